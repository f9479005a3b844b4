// Normalization layers and dropout.

#include "onnx/graph/evaluator.h"
#include "onnx/ops/helpers.h"
#include "ops/generated/creation.h"
#include "ops/generated/math.h"
#include "ops/generated/nn.h"
#include "ops/generated/random.h"
#include "ops/generated/reduce.h"
#include "ops/generated/shape.h"

namespace paddle::onnx {
namespace {

/// Reshapes a per-channel vector to broadcast over axis 1 of x.
Tensor per_channel(const Tensor& v, const Tensor& x) {
  if (x.ndim() < 2) fail(ErrorCode::kModel, "the input is ", x.type(), ", it has no channels");
  Shape shape(static_cast<size_t>(x.ndim()), Dim(1));
  shape[1] = v.dim(0);
  return ops::reshape(v, shape);
}

std::vector<int64_t> axes_but_channels(const Tensor& x) {
  std::vector<int64_t> axes;
  for (int64_t i = 0; i < x.ndim(); ++i)
    if (i != 1) axes.push_back(i);
  return axes;
}

/// Normalization with running statistics.
Tensor normalized(const NodeCall& c, double epsilon) {
  const Tensor &x = c.tensor(0), &scale = c.tensor(1), &bias = c.tensor(2), &mean = c.tensor(3),
               &variance = c.tensor(4);
  if (c.opset() < 9 && !c.bool_attr("spatial", true))  // per element of a sample
    return (x - mean) * ops::rsqrt(variance + epsilon) * scale + bias;
  const auto as = [&](const Tensor& t) { return ops::cast(t, x.dtype()); };
  const bool narrow = x.dtype() == DType::kF16 || x.dtype() == DType::kBF16;
  if (x.ndim() >= 2 && !narrow)
    return ops::batch_norm(x, as(mean), as(variance), as(scale), as(bias), false, 0.9, epsilon);
  return compute_in_float32(x, [&](const Tensor& wide) {
    const auto channel = [&](const Tensor& t) {
      return per_channel(ops::cast(t, wide.dtype()), wide);
    };
    return (wide - channel(mean)) * ops::rsqrt(channel(variance) + epsilon) * channel(scale) +
           channel(bias);
  });
}

Values batch_normalization(NodeCall& c) {
  c.check(c.tensor(0).ndim() >= 2, "the input must have channels on the axis 1");
  const Tensor &x = c.tensor(0), &scale = c.tensor(1), &bias = c.tensor(2), &mean = c.tensor(3),
               &variance = c.tensor(4);
  const double epsilon = c.float_attr("epsilon", 1e-5), momentum = c.float_attr("momentum", 0.9);
  const bool in_file = c.opset() >= 14  ? c.bool_attr("training_mode", false)
                       : c.opset() >= 7 ? c.has_output(1)
                                        : !c.bool_attr("is_test", false) && c.has_output(1);
  if (!in_file) return {normalized(c, epsilon)};
  if (!c.evaluator().is_training(c.node()))
    return {normalized(c, epsilon), mean, variance, mean, variance};
  const Tensor now = ops::mean(x, axes_but_channels(x));
  const Tensor centered = x - per_channel(now, x);
  const Tensor spread = ops::mean(centered * centered, axes_but_channels(x));
  const Tensor y = centered * ops::rsqrt(per_channel(spread, x) + epsilon) * per_channel(scale, x) +
                   per_channel(bias, x);
  return {y, mean * momentum + now * (1 - momentum), variance * momentum + spread * (1 - momentum),
          now, spread};
}

Values instance_normalization(NodeCall& c) {
  return {ops::instance_norm(c.tensor(0), {}, {}, c.tensor(1), c.tensor(2), true, 0.9,
                             c.float_attr("epsilon", 1e-5))};
}

/// The axes from `axis` on.
std::vector<int64_t> last_axes(const NodeCall& c, const Tensor& x) {
  std::vector<int64_t> axes;
  for (int64_t i = c.axis(c.int_attr("axis", -1), x.ndim()); i < x.ndim(); ++i) axes.push_back(i);
  return axes;
}

/// The dtype of statistics (attribute stash_type).
DType stash(const NodeCall& c, const Tensor& x) {
  const DType type = c.dtype_attr("stash_type", DType::kF32);
  return x.dtype() == DType::kF64 ? DType::kF64 : type;
}

bool all_known(const Tensor& x, const std::vector<int64_t>& axes) {
  for (const int64_t a : axes)
    if (!x.dim(a).is_constant()) return false;
  return true;
}

Values layer_normalization(NodeCall& c) {
  const Tensor& x = c.tensor(0);
  const auto axes = last_axes(c, x);
  const double epsilon = c.float_attr("epsilon", 1e-5);
  const Tensor scale = c.tensor(1), bias = c.optional_tensor(2);
  std::vector<int64_t> sizes;
  const bool whole = static_cast<int64_t>(axes.size()) == scale.ndim() && all_known(x, axes) &&
                     (!bias || bias.ndim() == scale.ndim());
  if (!c.has_output(1) && !c.has_output(2) && whole && x.dtype() == DType::kF32) {
    for (const int64_t a : axes) sizes.push_back(x.dim(a).value());
    if (same_shape(scale.shape(), to_shape(sizes)))
      return {ops::layer_norm(x, sizes, scale, bias, epsilon)};
  }
  const Tensor wide = ops::cast(x, stash(c, x));
  const Tensor mean = ops::mean(wide, axes, true);
  const Tensor centered = wide - mean;
  const Tensor inverse = ops::rsqrt(ops::mean(centered * centered, axes, true) + epsilon);
  Tensor y = ops::cast(centered * inverse, x.dtype()) * scale;
  if (bias) y = y + bias;
  return {y, mean, inverse};
}

Values rms_normalization(NodeCall& c) {
  const Tensor &x = c.tensor(0), &scale = c.tensor(1);
  const auto axes = last_axes(c, x);
  const double epsilon = c.float_attr("epsilon", 1e-5);
  const Tensor wide = ops::cast(x, stash(c, x));
  const Tensor inverse = ops::rsqrt(ops::mean(wide * wide, axes, true) + epsilon);
  return {ops::cast(wide * inverse, x.dtype()) * scale, inverse};
}

/// Scale and bias are per group up to opset 20, per channel since.
Values group_normalization(NodeCall& c) {
  const Tensor& x = c.tensor(0);
  const int64_t groups = c.int_attr("num_groups", 1);
  c.check(groups > 0, "num_groups must be positive");
  const Dim channels = x.dim(1);
  const auto widened = [&](const Tensor& v) {
    if (c.opset() >= 21) return v;
    const Dim each = floor_divide(channels, groups);
    return ops::reshape(ops::expand(ops::unsqueeze(v, {1}), {Dim(groups), each}), {channels});
  };
  const Tensor scale = widened(c.tensor(1)), bias = widened(c.tensor(2));
  return {
      ops::cast(ops::group_norm(ops::cast(x, stash(c, x)), groups, c.float_attr("epsilon", 1e-5),
                                ops::cast(scale, stash(c, x)), ops::cast(bias, stash(c, x))),
                x.dtype())};
}

Values lp_normalization(NodeCall& c) {
  const Tensor& x = c.tensor(0);
  const std::vector<int64_t> axis = {c.axis(c.int_attr("axis", -1), x.ndim())};
  // Squares and sums of narrower floats do not overflow in float64.
  const Tensor wide = ops::cast(x, DType::kF64);
  const Tensor norm = c.int_attr("p", 2) == 1
                          ? ops::sum(ops::abs(wide), axis, DType::kF64, true)
                          : ops::sqrt(ops::sum(wide * wide, axis, DType::kF64, true));
  return {ops::cast(divide_no_nan(wide, norm), x.dtype())};
}

Values mean_variance_normalization(NodeCall& c) {
  const Tensor& x = c.tensor(0);
  const bool whole = c.opset() < 9 && c.bool_attr("across_channels", false);
  const auto axes =
      c.ints_attr("axes", whole ? std::vector<int64_t>{0, 1, 2, 3} : std::vector<int64_t>{0, 2, 3});
  const Tensor centered = x - ops::mean(x, axes, true);
  if (c.opset() < 9 && !c.bool_attr("normalize_variance", true)) return {centered};
  const Tensor deviation = ops::sqrt(ops::mean(centered * centered, axes, true));
  return {centered / (deviation + 1e-9)};
}

Values lrn(NodeCall& c) {
  const int64_t size = c.int_attr("size", 1);
  c.check(size > 0 && size < 1 << 16, "the size ", size, " is out of range");
  return {ops::local_response_norm(c.tensor(0), size, c.float_attr("alpha", 1e-4),
                                   c.float_attr("beta", 0.75), c.float_attr("bias", 1))};
}

/// The mask is true for kept elements.
Values dropout(NodeCall& c) {
  const Tensor& x = c.tensor(0);
  const double ratio =
      c.opset() >= 12 ? (c.has_input(1) ? c.constant_float(1) : 0.5) : c.float_attr("ratio", 0.5);
  const bool training = c.opset() >= 12 && c.has_input(2) && c.constant_float(2) != 0 &&
                        c.evaluator().is_training(c.node());
  const DType mask_type = c.opset() >= 10 ? DType::kBool : x.dtype();
  // Old opsets leave the mask unspecified if nothing is dropped; use zeros like other runtimes.
  if (!training || ratio == 0)
    return {x, ops::full(x.shape(), c.opset() >= 12 ? 1.0 : 0.0, mask_type)};
  const Tensor kept = ops::bernoulli(ops::full(x.shape(), 1 - ratio, DType::kF32));
  return {ops::cast(kept, x.dtype()) * x / (1 - ratio), ops::cast(kept, mask_type)};
}

}  // namespace

OperatorTable norm_operators() {
  static constexpr Operator operators[] = {
      {"BatchNormalization", 1, batch_normalization},
      {"InstanceNormalization", 1, instance_normalization},
      {"LayerNormalization", 1, layer_normalization},
      {"RMSNormalization", 1, rms_normalization},
      {"SimplifiedLayerNormalization", 1, rms_normalization},
      {"GroupNormalization", 1, group_normalization},
      {"LpNormalization", 1, lp_normalization},
      {"MeanVarianceNormalization", 1, mean_variance_normalization},
      {"LRN", 1, lrn},
      {"Dropout", 1, dropout},
  };
  return operators;
}

}  // namespace paddle::onnx
