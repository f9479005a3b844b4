// Rules of dropout.yaml.

#include <algorithm>
#include <cmath>

#include "ops/core/compose.h"
#include "ops/generated/math.h"
#include "ops/generated/nn.h"
#include "ops/generated/nn_rules.h"
#include "ops/generated/random.h"
#include "ops/nn/channels.h"

namespace paddle::rules {

Tensors decompose_alpha_dropout(CallContext& c) {
  const auto a = c.attrs_as<AlphaDropoutAttrs>();
  const Tensor& x = c.operand(0);
  if (!(a.p >= 0 && a.p <= 1))
    fail(ErrorCode::kUsage, "alpha_dropout: p must lie in [0, 1], not ", a.p);
  if (!a.training || a.p == 0) return {ops::assign(x)};
  if (a.p == 1) return {x * 0.0};
  // Dropped elements become the lower limit of SELU; scale and shift restore mean and variance.
  const double limit = -1.0507009873554805 * 1.6732632423543772;
  const double scale = 1 / std::sqrt((1 - a.p) * (1 + a.p * limit * limit)),
               shift = -scale * limit * a.p;
  const Tensor kept = ops::dropout_mask(x, a.p, x.shape());
  return {(x * kept + (1.0 - kept) * limit) * scale + shift};
}

Tensors decompose_dropout2d(CallContext& c) {
  const auto a = c.attrs_as<Dropout2dAttrs>();
  check_rank("dropout2d", c.operand(0), 4);
  return {ops::dropout(c.operand(0), a.p, Axes{0, a.data_format == "NHWC" ? 3 : 1}, a.training)};
}

Tensors decompose_dropout3d(CallContext& c) {
  const auto a = c.attrs_as<Dropout3dAttrs>();
  const Tensor& x = c.operand(0);
  if (x.ndim() != 5) reject(c.op().name(), "x must have 5 dimensions, not ", x.type());
  return {ops::dropout(x, a.p, Axes{0, a.data_format == "NDHWC" ? 4 : 1}, a.training)};
}

Tensors decompose_fused_dropout_add(CallContext& c) {
  const auto a = c.attrs_as<FusedDropoutAddAttrs>();
  return {ops::dropout(c.operand(0), a.p, std::nullopt, a.training, a.mode) + c.operand(1)};
}

namespace {

/// x's shape with 1 in the axes that share one decision: those that `axis` does not name.
Shape decision_shape(const Tensor& x, const std::optional<Axes>& axis) {
  Shape shape = x.shape();
  if (!axis) return shape;
  const auto kept = normal_axes(axis, x.ndim());
  for (size_t i = 0; i < shape.size(); ++i)
    if (std::find(kept.begin(), kept.end(), static_cast<int64_t>(i)) == kept.end()) shape[i] = 1;
  return shape;
}

}  // namespace

void infer_dropout(InferContext& c) {
  const auto a = c.attrs_as<DropoutAttrs>();
  c.check(a.p >= 0 && a.p <= 1, "p must lie in [0, 1], not ", a.p);
  if (a.axis) c.axes(*a.axis, c.rank(0));
  infer_same(c);
}

Tensors decompose_dropout(CallContext& c) {
  const auto a = c.attrs_as<DropoutAttrs>();
  const Tensor& x = c.operand(0);
  const bool upscale = a.mode == "upscale_in_train";
  if (!a.training) return {upscale ? ops::assign(x) : x * (1 - a.p)};
  if (a.p == 0) return {ops::assign(x)};
  if (a.p == 1) return {x * 0.0};
  const Tensor dropped = x * ops::dropout_mask(x, a.p, decision_shape(x, a.axis));
  return {upscale ? dropped * (1 / (1 - a.p)) : dropped};
}

Tensors decompose_dropout_at_rate(CallContext& c) {
  const auto a = c.attrs_as<DropoutAtRateAttrs>();
  const Tensor& x = c.operand(0);
  const bool upscale = a.mode == "upscale_in_train";
  const Tensor p = ops::cast(ops::detach(c.operand(1)), x.dtype());
  if (p.ndim() != 0) reject("dropout", "p must be one number, not ", p.type());
  const Tensor keep = 1.0 - p;
  if (!a.training) return {upscale ? ops::assign(x) : x * keep};
  const Tensor drawn = ops::uniform(decision_shape(x, a.axis), DType::kF32);
  const Tensor kept = ops::greater_equal(drawn, ops::cast(p, DType::kF32));
  const Tensor dropped = ops::where(kept, x, x * 0.0);
  return {upscale ? dropped / ops::where(ops::greater_than(keep, number(0)), keep, keep + 1.0)
                  : dropped};
}

}  // namespace paddle::rules
