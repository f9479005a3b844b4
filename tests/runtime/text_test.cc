// The text form of modules: printing, parsing and printing again yields the same text, the parsed
// function computes the same, and damaged text is rejected with a place.

#include <gtest/gtest.h>

#include "ir/tracer.h"
#include "ops/core/operators.h"
#include "ops/generated/ops.h"
#include "runtime/compile.h"
#include "runtime/executable.h"
#include "runtime/execute.h"

namespace paddle {
namespace {

ir::Module sample_module() {
  runtime::register_backends();
  ir::Module module;
  module.name = "it's a \\ name";
  module.parameters.push_back({"w", {DType::kF32, {3, 2}}, "xavier_uniform", true});
  ir::Function& f = *module.functions.emplace_back(std::make_shared<ir::Function>("main"));
  ir::Tracer tracer(f);
  const InterpreterScope scope(tracer);
  const Tensor x =
      tracer.input({ir::PortKind::kValue, "x"}, {DType::kF32, {Dim::symbol("batch"), 3}});
  const Tensor w = tracer.input({ir::PortKind::kParameter, "w"}, {DType::kF32, {3, 2}});
  const Tensor y = ops::matmul(x, w) * 0.5;
  const Tensor parts = ops::concat({y, ops::relu(y)}, 1);
  const Tensors chosen = current_interpreter().branch(
      ops::greater_than(ops::sum(x), Tensor::number(0.0)),
      [&](const Tensors&) { return Tensors{parts + 1.0}; },
      [&](const Tensors&) { return Tensors{parts}; });
  const Tensors looped = current_interpreter().loop(
      [](const Tensors& s) { return Tensors{ops::less_than(s[1], Tensor::number(int64_t{3}))}; },
      [](const Tensors& s) {
        return Tensors{s[0] * 2.0, s[1] + Tensor::number(int64_t{1})};
      },
      {chosen[0], full_of({}, 0, DType::kI64)}, -1);
  tracer.output({ir::PortKind::kValue, "y"}, looped[0]);
  return module;
}

TEST(ModuleText, RoundTrip) {
  const ir::Module module = sample_module();
  const std::string text = ir::print(module);
  const ir::Module again = ir::parse(text, "test.txt");
  ir::verify(again);
  // Numbers of values are given again, so the third text must equal the second.
  const std::string second = ir::print(again);
  EXPECT_EQ(ir::print(ir::parse(second, "test.txt")), second);
  EXPECT_NE(text.find("batch"), std::string::npos);

  Array x = Array::from<float>({1, 2, 3, -4, 5, 6}, {2, 3});
  Array w = Array::from<float>({1, -1, 0.5f, 2, -2, 1}, {3, 2});
  runtime::Executable a(module.functions[0]), b(again.functions[0]);
  const Array ya = a.run({x, w})[0], yb = b.run({x, w})[0];
  ASSERT_EQ(ya.shape, yb.shape);
  for (int64_t i = 0; i < ya.size(); ++i) EXPECT_EQ(ya.number(i), yb.number(i));
}

TEST(ModuleText, PassesKeepTheResultAndTheDimsNames) {
  const ir::Module module = sample_module();
  ir::Function& f = *module.functions[0];
  runtime::optimize(f);
  ir::verify(module);
  EXPECT_NE(ir::print(module).find("float32[batch, 4]"), std::string::npos);
}

TEST(ModuleText, ElidesLongConstants) {
  ir::Function function("f");
  ir::Value* constant = function.add_constant(Array::from<float>({1, 2, 3}, {3}));
  function.add_output({ir::PortKind::kValue, "y"}, constant);
  EXPECT_NE(ir::print_module(function, "m", 3).find("constant float32[3] [1"), std::string::npos);
  const std::string text = ir::print_module(function, "m", 2);
  EXPECT_NE(text.find("constant float32[3] elided\n"), std::string::npos) << text;
  try {
    ir::parse(text, "test.txt");
    ADD_FAILURE() << "accepted";
  } catch (const Error& e) {
    EXPECT_NE(e.message().find("elided"), std::string::npos) << e.message();
  }
}

// int4 elements 1, 2, -1: two to a byte, the first in its lower half.
TEST(ModuleText, HoldsConstantsOfStorageTypes) {
  runtime::register_backends();
  const std::string text =
      "module 'm' {\n"
      "  func 'f'() {\n"
      "    %0 = constant int4[3] bytes '210f'\n"
      "    %1 = constant float8_e4m3fn[1] bytes '38'\n"
      "    %2 = cast(%0) {dtype = float32} : float32[3]\n"
      "    %3 = cast(%1) {dtype = float32} : float32[1]\n"
      "    return %2 'x', %3 'y'\n"
      "  }\n"
      "}\n";
  const ir::Module module = ir::parse(text, "test.txt");
  ir::verify(module);
  EXPECT_EQ(ir::print(module), text);
  runtime::Executable executable(module.functions[0]);
  const auto& results = executable.run({});
  EXPECT_EQ(results[0].number(0), 1);
  EXPECT_EQ(results[0].number(1), 2);
  EXPECT_EQ(results[0].number(2), -1);
  EXPECT_EQ(results[1].number(0), 1);

  for (const auto& [bytes, message] : {std::pair{"'210'", "expected 4 hexadecimal digits, found 3"},
                                       std::pair{"'210g'", "'g' is not a hexadecimal digit"}}) {
    try {
      ir::parse(std::string("module 'm' { func 'f'() { %0 = constant int4[3] bytes ") + bytes +
                    " return %0 'x' } }",
                "test.txt");
      ADD_FAILURE() << bytes << " was accepted";
    } catch (const Error& e) {
      EXPECT_EQ(e.message(), message);
    }
  }
}

// Operations may have got further optional operands since a model was saved.
TEST(ModuleText, LastOptionalOperandsMayBeMissing) {
  const auto with = [](const char* operands) {
    const std::string text =
        str("module 'm' {\n  func 'f'(\n      %0 : float32[1, 4, 8, 8] 'x',\n",
            "      %1 : float32[4, 4, 3, 3] 'w') {\n    %2 = conv2d(", operands,
            ") {padding = 1} : float32[1, 4, 8, 8]\n    return %2 'y'\n  }\n}\n");
    return ir::print(ir::parse(text, "test.txt"));
  };
  EXPECT_EQ(with("%0, %1"), with("%0, %1, _"));
  EXPECT_THROW(with("%0"), Error);
}

TEST(ModuleText, DamageIsRejected) {
  const std::string text = ir::print(sample_module());
  int rejected = 0;
  for (size_t cut = 0; cut + 3 < text.size(); cut += 7) {
    try {
      ir::verify(ir::parse(text.substr(0, cut), "test.txt"));
      ADD_FAILURE() << "text cut at " << cut << " was accepted";
    } catch (const Error& e) {
      EXPECT_EQ(e.code(), ErrorCode::kModel);
      ++rejected;
    }
  }
  EXPECT_GT(rejected, 10);
  // One character changed anywhere: rejected or accepted, never a crash.
  for (size_t at = 0; at < text.size(); at += 3) {
    std::string changed = text;
    changed[at] = static_cast<char>(33 + (at * 7) % 90);
    try {
      ir::verify(ir::parse(changed, "test.txt"));
    } catch (const Error& e) {
      EXPECT_TRUE(e.code() == ErrorCode::kModel || e.code() == ErrorCode::kUsage) << e.what();
    }
  }
}

}  // namespace
}  // namespace paddle
