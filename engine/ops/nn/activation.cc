// Rules of activation.yaml.

#include <cmath>
#include <numbers>

#include "ops/core/compose.h"
#include "ops/generated/math.h"
#include "ops/generated/nn.h"
#include "ops/generated/nn_rules.h"
#include "ops/generated/random.h"
#include "ops/generated/reduce.h"
#include "ops/generated/shape.h"

namespace paddle::rules {
namespace {

/// 1 where low < x < high, as the dtype of g.
Tensor between(const Tensor& x, double low, double high, const Tensor& g) {
  return mask_of(
      ops::logical_and(ops::greater_than(x, number(low)), ops::less_than(x, number(high))), g);
}

/// Halves of x along an axis.
Tensors halves(const Tensor& x, int64_t axis) { return ops::split(x, AttrValue(2), axis); }

}  // namespace

Tensors vjp_celu(VjpContext& c) {
  const Tensor &x = c.operand(0), &g = c.cotangent();
  const double alpha = c.attrs_as<CeluAttrs>().alpha;
  return {g * ops::where(ops::greater_than(x, number(0)), number(1.0),
                         ops::exp(ops::minimum(x, number(0.0)) * (1 / alpha)))};
}

Tensors vjp_selu(VjpContext& c) {
  const auto a = c.attrs_as<SeluAttrs>();
  const Tensor &x = c.operand(0), &g = c.cotangent();
  return {g * ops::where(ops::greater_than(x, number(0)), number(a.scale),
                         ops::exp(ops::minimum(x, number(0.0))) * (a.scale * a.alpha))};
}

Tensors vjp_hardtanh(VjpContext& c) {
  const auto a = c.attrs_as<HardtanhAttrs>();
  return {c.cotangent() * between(c.operand(0), a.min, a.max, c.cotangent())};
}

Tensors vjp_relu6(VjpContext& c) {
  return {c.cotangent() * between(c.operand(0), 0, 6, c.cotangent())};
}

Tensors vjp_hardsigmoid(VjpContext& c) {
  const auto a = c.attrs_as<HardsigmoidAttrs>();
  return {c.cotangent() * between(c.result(0), 0, 1, c.cotangent()) * a.slope};
}

Tensors vjp_hardswish(VjpContext& c) {
  const Tensor &x = c.operand(0), &g = c.cotangent();
  const Tensor inner = between(x, -3, 3, g) * ((x * 2.0 + 3.0) / 6.0);
  return {g * (inner + mask_of(ops::greater_equal(x, number(3)), g))};
}

Tensors vjp_hardshrink(VjpContext& c) {
  const double t = c.attrs_as<HardshrinkAttrs>().threshold;
  return {c.cotangent() *
          mask_of(ops::greater_than(ops::abs(c.operand(0)), number(t)), c.cotangent())};
}

Tensors vjp_softshrink(VjpContext& c) {
  const double t = c.attrs_as<SoftshrinkAttrs>().threshold;
  return {c.cotangent() *
          mask_of(ops::greater_than(ops::abs(c.operand(0)), number(t)), c.cotangent())};
}

Tensors vjp_tanhshrink(VjpContext& c) {
  return {c.cotangent() * ops::square(ops::tanh(c.operand(0)))};
}

Tensors vjp_softsign(VjpContext& c) {
  return {c.cotangent() / ops::square(ops::abs(c.operand(0)) + 1.0)};
}

Tensors vjp_log_sigmoid(VjpContext& c) { return {c.cotangent() * ops::sigmoid(-c.operand(0))}; }

Tensors vjp_mish(VjpContext& c) {
  const Tensor& x = c.operand(0);
  const Tensor t = ops::tanh(-ops::log_sigmoid(-x));
  return {c.cotangent() * (t + x * (1.0 - t * t) * ops::sigmoid(x))};
}

Tensors vjp_thresholded_relu(VjpContext& c) {
  const double t = c.attrs_as<ThresholdedReluAttrs>().threshold;
  return {c.cotangent() * mask_of(ops::greater_than(c.operand(0), number(t)), c.cotangent())};
}

Tensors vjp_stanh(VjpContext& c) {
  const auto a = c.attrs_as<StanhAttrs>();
  const Tensor t = ops::tanh(c.operand(0) * a.scale_a);
  return {c.cotangent() * (1.0 - t * t) * (a.scale_a * a.scale_b)};
}

void infer_celu(InferContext& c) {
  c.check(c.attrs_as<CeluAttrs>().alpha != 0, "alpha must not be 0");
  infer_unary(c);
}

void infer_selu(InferContext& c) {
  const auto a = c.attrs_as<SeluAttrs>();
  c.check(a.scale > 1, "scale must be above 1, not ", a.scale);
  c.check(a.alpha >= 0, "alpha must not be negative, not ", a.alpha);
  infer_unary(c);
}

void infer_softshrink(InferContext& c) {
  const double t = c.attrs_as<SoftshrinkAttrs>().threshold;
  c.check(t >= 0, "threshold must not be negative, not ", t);
  infer_unary(c);
}

Tensors decompose_prelu(CallContext& c) {
  const auto a = c.attrs_as<PreluAttrs>();
  const Tensor& x = c.operand(0);
  Tensor weight = c.operand(1);
  if (weight.ndim() > 1)
    fail(ErrorCode::kUsage, "prelu: weight must have one dimension, not ", weight.type());
  const auto count = element_count(std::span<const Dim>(weight.shape()));
  if (count.is_constant() && count.value() == 1) {
    weight = ops::reshape(weight, Shape());
  } else if (x.ndim() > 1) {
    const bool last = x.ndim() > 2 && !a.data_format.empty() && a.data_format.back() == 'C';
    Shape shape(x.shape().size(), Dim(1));
    const size_t axis = last ? shape.size() - 1 : 1;
    if (x.shape()[axis].equals(count) == false)
      fail(ErrorCode::kUsage, "prelu: ", count, " weights do not fit the ", x.shape()[axis],
           " channels of x ", x.type());
    shape[axis] = -1;
    weight = ops::reshape(weight, shape);
  } else {
    fail(ErrorCode::kUsage, "prelu: ", count, " weights do not fit x ", x.type(),
         ", which has no channels");
  }
  return {ops::where(ops::greater_than(x, number(0)), x, x * weight)};
}

Tensors decompose_glu(CallContext& c) {
  const Tensors parts = halves(c.operand(0), c.attrs_as<GluAttrs>().axis);
  return {parts[0] * ops::sigmoid(parts[1])};
}

Tensors decompose_swiglu(CallContext& c) {
  if (c.has(1)) {
    const Tensor &x = c.operand(0), &y = c.operand(1);
    bool same = x.ndim() == y.ndim();
    for (int64_t i = 0; same && i < x.ndim(); ++i) same = x.dim(i).equals(y.dim(i)) != false;
    if (!same) fail(ErrorCode::kUsage, "swiglu: x is ", x.type(), ", y is ", y.type());
    return {ops::silu(x) * y};
  }
  const Tensors parts = halves(c.operand(0), -1);
  return {ops::silu(parts[0]) * parts[1]};
}

Tensors decompose_maxout(CallContext& c) {
  const auto a = c.attrs_as<MaxoutAttrs>();
  const Tensor& x = c.operand(0);
  const int64_t axis = a.axis < 0 ? a.axis + x.ndim() : a.axis;
  if (a.groups < 2) fail(ErrorCode::kUsage, "maxout: groups must be larger than 1, not ", a.groups);
  if (axis < 0 || axis >= x.ndim())
    fail(ErrorCode::kUsage, "maxout: axis ", a.axis, " is out of range for ", x.type());
  Shape shape = x.shape();
  const Dim channels = shape[static_cast<size_t>(axis)];
  if (modulo(channels, a.groups).constant().value_or(0) != 0 || channels.less(a.groups) == true)
    fail(ErrorCode::kUsage, "maxout: ", channels, " channels do not divide into groups of ",
         a.groups);
  shape[static_cast<size_t>(axis)] = floor_divide(channels, a.groups);
  shape.insert(shape.begin() + axis + 1, Dim(a.groups));
  return {ops::max(ops::reshape(x, shape), std::vector<int64_t>{axis + 1})};
}

void infer_softmax(InferContext& c) {
  const auto a = c.attrs_as<SoftmaxAttrs>();
  c.axis(a.axis, c.rank(0));
  c.result(a.dtype.value_or(c.dtype(0)), c.shape(0));
}

Tensors vjp_softmax(VjpContext& c) {
  const auto a = c.attrs_as<SoftmaxAttrs>();
  const Tensor &g = c.cotangent(), &y = c.result(0);
  const Tensor weighted = g * y;
  const Tensor dx = y.ndim() == 0 ? zeros_like(y)
                                  : weighted - y * ops::sum(weighted, std::vector<int64_t>{a.axis},
                                                            std::nullopt, true);
  return {ops::cast(dx, c.operand(0).dtype())};
}

Tensors vjp_log_softmax(VjpContext& c) {
  const auto a = c.attrs_as<SoftmaxAttrs>();
  const Tensor &g = c.cotangent(), &y = c.result(0);
  const Tensor dx = y.ndim() == 0 ? zeros_like(y)
                                  : g - ops::exp(y) * ops::sum(g, std::vector<int64_t>{a.axis},
                                                               std::nullopt, true);
  return {ops::cast(dx, c.operand(0).dtype())};
}
namespace {

Tensor positive(const Tensor& x) { return mask_of(ops::greater_than(x, Tensor::number(0.0)), x); }

}  // namespace

Tensors vjp_sigmoid(VjpContext& c) { return {c.cotangent() * c.result(0) * (1.0 - c.result(0))}; }

Tensors vjp_relu(VjpContext& c) { return {c.cotangent() * positive(c.result(0))}; }

Tensors vjp_gelu(VjpContext& c) {
  const Tensor x = c.operand(0);
  if (c.attrs_as<GeluAttrs>().approximate) {
    const double k = std::sqrt(2.0 / std::numbers::pi);
    const Tensor inner = (x + x * x * x * 0.044715) * k;
    const Tensor t = ops::tanh(inner);
    const Tensor slope = (x * x * (3 * 0.044715) + 1.0) * k;
    return {c.cotangent() * ((t + 1.0) * 0.5 + x * (1.0 - t * t) * slope * 0.5)};
  }
  const Tensor cdf = (ops::erf(x * std::numbers::sqrt2 * 0.5) + 1.0) * 0.5;
  const Tensor density = ops::exp(x * x * -0.5) * (std::numbers::inv_sqrtpi / std::numbers::sqrt2);
  return {c.cotangent() * (cdf + x * density)};
}

Tensors vjp_silu(VjpContext& c) {
  const Tensor s = ops::sigmoid(c.operand(0));
  return {c.cotangent() * (s + c.result(0) * (1.0 - s))};
}

Tensors vjp_softplus(VjpContext& c) {
  const auto a = c.attrs_as<SoftplusAttrs>();
  const Tensor z = c.operand(0) * a.beta;
  const Tensor linear = ops::greater_than(z, Tensor::number(a.threshold));
  return {c.cotangent() * ops::where(linear, Tensor::number(1.0), ops::sigmoid(z))};
}

Tensors vjp_leaky_relu(VjpContext& c) {
  const double slope = c.attrs_as<LeakyReluAttrs>().negative_slope;
  // At 0 the slope is that of the positive side.
  const Tensor above = mask_of(ops::greater_equal(c.operand(0), Tensor::number(0.0)), c.operand(0));
  return {c.cotangent() * (above * (1 - slope) + slope)};
}

Tensors vjp_elu(VjpContext& c) {
  const double alpha = c.attrs_as<EluAttrs>().alpha;
  const Tensor x = c.operand(0);
  const Tensor above = ops::greater_than(x, Tensor::number(0.0));
  const Tensor below = ops::exp(ops::minimum(x, Tensor::number(0.0))) * alpha;
  return {c.cotangent() * ops::where(above, Tensor::number(1.0), below)};
}
namespace {}  // namespace

Tensors decompose_rrelu(CallContext& c) {
  const auto a = c.attrs_as<RreluAttrs>();
  const Tensor& x = c.operand(0);
  if (!(a.lower >= 0 && a.lower <= a.upper && a.upper <= 1))
    reject("rrelu", "0 <= lower <= upper <= 1 is needed, not ", a.lower, " and ", a.upper);
  const Tensor scaled =
      a.training ? x * ops::cast(ops::uniform(x.shape(), {}, a.lower, a.upper), x.dtype())
                 : x * ((a.lower + a.upper) / 2);
  return {ops::where(ops::greater_equal(x, number(0)), x, scaled)};
}

}  // namespace paddle::rules
