// Passes keep operations with the trait kEffect, their number and their order.

#include <gtest/gtest.h>

#include "compiler/pipeline.h"
#include "ir/module.h"
#include "ops/core/call.h"
#include "runtime/compile.h"
#include "runtime/execute.h"

namespace paddle {
namespace {

/// An operation like `like` that also has an effect.
Op with_effect(const Op& like, OpDef& def) {
  def = *like.def;
  def.traits |= kEffect;
  Op op = like;
  op.def = &def;
  return op;
}

std::vector<const ir::Value*> operands_of(const ir::Region& region, const Op& op) {
  std::vector<const ir::Value*> out;
  ir::for_each_operation(region, [&](const ir::Operation& o) {
    if (o.op == &op) out.push_back(o.operands[0]);
  });
  return out;
}

TEST(Effects, AreNotRemovedMergedOrReordered) {
  runtime::register_backends();
  OpDef unary_def, reduction_def;
  const Op report = with_effect(get_op("neg"), unary_def);
  const Op total = with_effect(get_op("sum"), reduction_def);
  for (const compiler::Pass& pass : runtime::pass_pipeline()) {
    SCOPED_TRACE(pass.name);
    ir::Function function("f");
    const TensorType type{DType::kF32, {Dim(4)}};
    ir::Value* x = function.add_input({ir::PortKind::kValue, "x"}, type);
    ir::Value* y = function.add_input({ir::PortKind::kValue, "y"}, type);
    ir::Value* constant = function.add_constant(Array::from<float>({1, 2, 3, 4}, {4}));
    const auto append = [&](const Op& op, ir::Value* operand, const TensorType& result) {
      function.append(function.body, op, {operand}, default_attrs(op), {result});
    };
    // Nothing reads the results. Two calls are equal, one could be evaluated at compile time, and
    // the reductions to scalars could move up to their operands.
    for (ir::Value* v : {x, y, x, constant}) append(report, v, type);
    for (ir::Value* v : {y, x, x}) append(total, v, {DType::kF32, {}});
    function.add_output({ir::PortKind::kValue, "z"}, x);
    pass.run(function);
    const ir::Region& body = function.body;
    ASSERT_EQ(operands_of(body, report).size(), 4u) << ir::print(function);
    ASSERT_EQ(operands_of(body, total).size(), 3u) << ir::print(function);
    std::vector<const Op*> order;
    for (const auto& o : body.operations)
      if (o->op == &report || o->op == &total) order.push_back(o->op);
    EXPECT_EQ(order,
              (std::vector<const Op*>{&report, &report, &report, &report, &total, &total, &total}));
    const auto inputs = body.arguments;
    const auto reported = operands_of(body, report), summed = operands_of(body, total);
    EXPECT_EQ(reported[0], inputs[0]);
    EXPECT_EQ(reported[1], inputs[1]);
    EXPECT_EQ(reported[2], inputs[0]);
    EXPECT_EQ(summed, (std::vector<const ir::Value*>{inputs[1], inputs[0], inputs[0]}));
  }
}

}  // namespace
}  // namespace paddle
