// Operations of the backward pass have the source location of the forward operation that they
// differentiate, and errors of gradient rules name it.

#include <gtest/gtest.h>

#include <map>
#include <set>

#include "autograd/autograd.h"
#include "ir/tracer.h"
#include "ops/core/operators.h"
#include "ops/generated/ops.h"
#include "runtime/execute.h"

namespace paddle {
namespace {

Tensor squared_sum(const Tensor& x) {
  Tensor y;
  {
    const ir::LocationScope scope("model.yaml:3:5");
    y = ops::sin(x);
  }
  const ir::LocationScope scope("model.yaml:4:5");
  return ops::sum(y * y);
}

TEST(Locations, OfBackwardOperationsAreThoseOfForwardOnes) {
  runtime::register_backends();
  ir::Function function("f");
  ir::Tracer tracer(function);
  const InterpreterScope scope(tracer);
  const Tensor x = tracer.input({ir::PortKind::kValue, "x"}, {DType::kF64, {Dim(3)}});
  const Tensor loss = squared_sum(x);
  const int64_t forward = function.operation_count();
  autograd::grad({loss}, {x});
  std::map<std::string, std::set<std::string>> operations;
  int64_t at = 0;
  for (const auto& o : function.body.operations)
    if (at++ >= forward) operations[o->location].insert(std::string(o->op->name()));
  EXPECT_TRUE(operations["model.yaml:3:5 (gradient)"].count("cos")) << ir::print(function);
  EXPECT_TRUE(operations["model.yaml:4:5 (gradient)"].count("multiply")) << ir::print(function);
  EXPECT_FALSE(operations["model.yaml:4:5 (gradient)"].count("cos")) << ir::print(function);
}

TEST(Locations, OfErrorsInGradientRules) {
  runtime::register_backends();
  runtime::EagerExecutor executor;
  const InterpreterScope executing(executor);
  autograd::Tape tape;
  const InterpreterScope recording(tape);
  const Tensor x = autograd::variable(Tensor(Array::from<float>({1, 2, 3, 4}, {2, 2, 1, 1})));
  const Tensor channel = Tensor(Array::from<float>({1, 1}, {2}));
  Tensor scale;
  {
    const ir::LocationScope scope("model.yaml:7:9");
    // An operation of compiled functions only, which has no gradient rule.
    scale = ops::batch_norm_statistics(x, channel, channel, {}, {}, true)[4];
  }
  try {
    autograd::grad({scale}, {x});
    FAIL() << "has a gradient";
  } catch (const Error& e) {
    EXPECT_EQ(e.location().text(), "model.yaml:7:9");
    EXPECT_NE(e.message().find("has no gradient"), std::string::npos) << e.what();
  }
}

}  // namespace
}  // namespace paddle
