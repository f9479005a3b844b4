// Traces depend on the kernels of the function's target.

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "compiler/passes/passes.h"
#include "ir/replay.h"
#include "ir/tracer.h"
#include "ops/core/backend.h"
#include "ops/generated/ops.h"
#include "runtime/compile.h"
#include "runtime/execute.h"

namespace paddle {
namespace {

constexpr Device kOther{97, 0};

/// A device whose only kernel is one that the CPU lacks.
void register_other() {
  static const bool kOnce = [] {
    runtime::register_backends();
    register_backend({.name = "other",
                      .device_kind = kOther.kind,
                      .prepare = [](const KernelRequest&) { return nothing_to_do(); },
                      .has_kernel =
                          [](const Op& op, const TargetInfo&, std::span<const DType> operands) {
                            return op.name() == "glu" &&
                                   std::ranges::find(operands, DType::kF64) == operands.end();
                          },
                      .describe =
                          [](TargetInfo& target) {
                            target.architecture = "other9";
                            target.images.channels_last = 0;
                            target.alignment = 256;
                          }});
    return true;
  }();
  EXPECT_TRUE(kOnce);
}

std::set<std::string> operations(const ir::Function& f) {
  std::set<std::string> out;
  ir::for_each_operation(f.body, [&](const ir::Operation& o) { out.emplace(o.op->name()); });
  return out;
}

std::unique_ptr<ir::Function> traced(const TargetInfo& target) {
  auto f = std::make_unique<ir::Function>("f", target);
  ir::Tracer tracer(*f);
  const InterpreterScope scope(tracer);
  const Tensor x = tracer.input({ir::PortKind::kValue, "x"}, {DType::kF32, {4, 6}});
  tracer.output({ir::PortKind::kValue, "y"}, ops::glu(x));
  return f;
}

TEST(Target, OperationsStayWholeWhereTheTargetHasAKernel) {
  register_other();
  EXPECT_FALSE(operations(*traced({})).contains("glu"));
  EXPECT_TRUE(operations(*traced({.device = kOther})).contains("glu"));
}

TEST(Target, WhatIsTracedAgainKeepsTheTarget) {
  register_other();
  class Same final : public ForwardingInterpreter {
   public:
    Tensors apply(const OpCall& c) override {
      EXPECT_EQ(device(), kOther);
      const ScopedInterpreter below(next());
      return next().apply(c);
    }
  } same;
  const auto again = ir::retraced(*traced({.device = kOther}), same);
  EXPECT_EQ(again->target.device, kOther);
  EXPECT_TRUE(operations(*again).contains("glu"));
}

TEST(Target, FunctionsMoveToAnother) {
  register_other();
  const auto f = traced({.device = kOther});
  passes::for_target(*f, {});
  EXPECT_FALSE(operations(*f).contains("glu"));
  EXPECT_EQ(f->target.device, Device::cpu());
}

TEST(Target, QuestionsToABackendCarryTypes) {
  register_other();
  const auto traced_in = [](DType dtype) {
    ir::Function f("f", {.device = kOther});
    ir::Tracer tracer(f);
    const InterpreterScope scope(tracer);
    ops::glu(tracer.input({ir::PortKind::kValue, "x"}, {dtype, {4, 6}}));
    return operations(f);
  };
  EXPECT_TRUE(traced_in(DType::kF32).contains("glu"));
  EXPECT_FALSE(traced_in(DType::kF64).contains("glu"));
}

TEST(Target, BackendsDescribeTheirDevice) {
  register_other();
  const TargetInfo other = resolved({.device = kOther, .tile_bytes = 5});
  EXPECT_EQ(other.architecture, "other9");
  EXPECT_EQ(other.images.channels_last, 0);
  EXPECT_EQ(other.tile_bytes, 5);
  EXPECT_EQ(resolved({.device = kOther, .architecture = "other8"}).images.channels_last, 32)
      << "a stated architecture is kept as it is";
  const TargetInfo cpu = resolved({});
  EXPECT_FALSE(cpu.architecture.empty());
  EXPECT_EQ(cpu.alignment, 64);
  EXPECT_EQ(resolved({.device = parse_device("mirror")}).features, cpu.features);
}

ir::Module module_of(const TargetInfo& target) {
  ir::Module module;
  module.name = "m";
  module.functions.push_back(traced(target));
  return module;
}

TEST(Target, TheTextFormKeepsIt) {
  register_other();
  EXPECT_EQ(ir::print(module_of({})).find("target"), std::string::npos);
  EXPECT_EQ(ir::print(module_of(resolved({}))).find("target"), std::string::npos)
      << "what this CPU compiles reads alike on others";
  const TargetInfo stated{.device = parse_device("mirror"),
                          .architecture = "it's",
                          .features = {"avx2", "fma"},
                          .images = {.channels_last = 0, .also_channels_last = 3},
                          .fusion = {.operations = 2, .operands = 5, .reductions = 0},
                          .tile_bytes = 1 << 20,
                          .alignment = 128,
                          .memory = int64_t{1} << 33};
  const std::string printed = ir::print(module_of(stated));
  const ir::Module parsed = ir::parse(printed, "m.ir");
  EXPECT_EQ(parsed.functions[0]->target, stated) << printed;
  EXPECT_EQ(ir::print(parsed), printed);
  for (const char* bad : {"target {speed = 3}", "target {alignment = 48}", "target {device = 'no'}",
                          "target {tile_bytes = x}", "target {}"}) {
    std::string text = ir::print(module_of({}));
    text.replace(text.find(") {"), 3, str(") ", bad, " {"));
    EXPECT_THROW(ir::parse(text, "m.ir"), Error) << bad;
  }
}

void trace_chain(ir::Function& f) {
  ir::Tracer tracer(f);
  const InterpreterScope scope(tracer);
  const Tensor x = tracer.input({ir::PortKind::kValue, "x"}, {DType::kF32, {64, 64}});
  tracer.output({ir::PortKind::kValue, "y"}, ops::tanh(ops::exp(ops::sin(ops::relu(x)))));
}

TEST(Target, LimitsFusion) {
  for (const auto& [most, groups] : {std::pair{48, 1}, {2, 2}}) {
    ir::Function f("f");
    trace_chain(f);
    TargetInfo target{.architecture = "stated"};
    target.fusion.operations = most;
    runtime::optimize(f, {.target = target});
    int found = 0;
    for (const auto& o : f.body.operations) found += o->op->name() == "fused" ? 1 : 0;
    EXPECT_EQ(found, groups);
  }
}

TEST(Target, LimitsMemoryAndAlignsBuffers) {
  const auto arena_on = [](const TargetInfo& target) {
    auto f = std::make_shared<ir::Function>("f", target);
    trace_chain(*f);
    const auto executable = runtime::compile(f, {.fusion = false, .target = target});
    return executable->plan({Layout::contiguous(DType::kF32, {64, 64})}).arena_bytes();
  };
  EXPECT_EQ(arena_on({.architecture = "stated", .alignment = 1 << 20}) % (1 << 20), 0u);
  EXPECT_GT(arena_on({.architecture = "stated", .memory = 1 << 20}), 0u);
  try {
    arena_on({.architecture = "stated", .memory = 20000});
    FAIL() << "expected an error";
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), ErrorCode::kDevice);
    EXPECT_NE(e.message().find("target states"), std::string::npos) << e.message();
  }
}

}  // namespace
}  // namespace paddle
