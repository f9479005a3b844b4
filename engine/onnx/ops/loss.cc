
#include "onnx/ops/helpers.h"
#include "ops/generated/indexing.h"
#include "ops/generated/math.h"
#include "ops/generated/nn.h"
#include "ops/generated/reduce.h"
#include "ops/generated/shape.h"

namespace paddle::onnx {
namespace {

/// Weighted negative log probability of each target; ignored targets contribute 0.
Tensor negative_log_likelihood(const NodeCall& c, const Tensor& log_probability,
                               const Tensor& target, const Tensor& weight) {
  const Tensor wide = ops::cast(target, DType::kI64);
  const DType dtype = log_probability.dtype();
  Tensor index = wide, kept;
  if (c.has_attribute("ignore_index")) {
    kept = ops::not_equal(wide, int_scalar(c.int_attr("ignore_index", 0)));
    index = ops::where(kept, wide, int_scalar(0));
  }
  const Tensor chosen =
      ops::squeeze(ops::take_along_axis(log_probability, ops::unsqueeze(index, {1}), 1, false),
                   std::vector<int64_t>{1});
  Tensor each;
  if (weight)
    each =
        ops::reshape(ops::index_select(weight, ops::reshape(index, Shape{-1}), 0), index.shape());
  const Tensor zero = scalar(0, dtype);
  if (kept) each = ops::where(kept, each ? each : scalar(1, dtype), zero);
  Tensor loss = each ? ops::neg(chosen) * each : ops::neg(chosen);
  if (kept) loss = ops::where(kept, loss, zero);  // 0 times NaN or infinity would be NaN
  const std::string reduction = c.string_attr("reduction", "mean");
  if (reduction == "none") return loss;
  if (reduction == "sum") return ops::sum(loss, {}, dtype);
  c.check(reduction == "mean", "unknown reduction '", reduction, "'");
  if (!each) return ops::mean(loss);
  return ops::sum(loss, {}, dtype) / ops::sum(each, {}, dtype);
}

Values nll_loss(NodeCall& c) {
  return {negative_log_likelihood(c, c.tensor(0), c.tensor(1), c.optional_tensor(2))};
}

Values softmax_cross_entropy(NodeCall& c) {
  const Tensor log_probability = ops::log_softmax(c.tensor(0), 1);
  return {negative_log_likelihood(c, log_probability, c.tensor(1), c.optional_tensor(2)),
          log_probability};
}

}  // namespace

OperatorTable loss_operators() {
  static constexpr Operator operators[] = {
      {"NegativeLogLikelihoodLoss", 1, nll_loss},
      {"SoftmaxCrossEntropyLoss", 1, softmax_cross_entropy},
  };
  return operators;
}

}  // namespace paddle::onnx
