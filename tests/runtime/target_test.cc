// Traces depend on the kernels of the function's target.

#include <gtest/gtest.h>

#include <set>

#include "compiler/passes/passes.h"
#include "ir/replay.h"
#include "ir/tracer.h"
#include "ops/core/backend.h"
#include "ops/generated/ops.h"
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
                      .has_kernel = [](const Op& op) { return op.name() == "glu"; }});
    return true;
  }();
  EXPECT_TRUE(kOnce);
}

std::set<std::string> operations(const ir::Function& f) {
  std::set<std::string> out;
  ir::for_each_operation(f.body, [&](const ir::Operation& o) { out.emplace(o.op->name()); });
  return out;
}

std::unique_ptr<ir::Function> traced(const Target& target) {
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

}  // namespace
}  // namespace paddle
