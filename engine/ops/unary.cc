// Rules of schema/unary.yaml. The gradients use the result where that saves work.

#include <cmath>
#include <numbers>

#include "ops/generated/attrs.h"
#include "ops/generated/rules.h"
#include "ops/operators.h"

namespace paddle::rules {

void infer_unary(InferContext& c) { c.result(c.dtype(0), c.shape(0)); }
void infer_same(InferContext& c) { c.result(c.dtype(0), c.shape(0)); }

namespace {
Tensor positive(const Tensor& x) { return mask_of(ops::greater_than(x, Tensor::number(0.0)), x); }
}  // namespace

Tensors vjp_exp(VjpContext& c) { return {c.cotangent() * c.result(0)}; }
Tensors vjp_expm1(VjpContext& c) { return {c.cotangent() * (c.result(0) + 1.0)}; }
Tensors vjp_log(VjpContext& c) { return {c.cotangent() / c.operand(0)}; }
Tensors vjp_log2(VjpContext& c) { return {c.cotangent() / (c.operand(0) * std::numbers::ln2)}; }
Tensors vjp_log10(VjpContext& c) { return {c.cotangent() / (c.operand(0) * std::numbers::ln10)}; }
Tensors vjp_log1p(VjpContext& c) { return {c.cotangent() / (c.operand(0) + 1.0)}; }
Tensors vjp_sqrt(VjpContext& c) { return {c.cotangent() / (c.result(0) * 2.0)}; }
Tensors vjp_rsqrt(VjpContext& c) { return {c.cotangent() * c.result(0) / c.operand(0) * -0.5}; }
Tensors vjp_square(VjpContext& c) { return {c.cotangent() * c.operand(0) * 2.0}; }
Tensors vjp_reciprocal(VjpContext& c) { return {-(c.cotangent() * c.result(0) * c.result(0))}; }
Tensors vjp_abs(VjpContext& c) { return {c.cotangent() * ops::sign(c.operand(0))}; }
Tensors vjp_neg(VjpContext& c) { return {-c.cotangent()}; }
Tensors vjp_sin(VjpContext& c) { return {c.cotangent() * ops::cos(c.operand(0))}; }
Tensors vjp_cos(VjpContext& c) { return {-(c.cotangent() * ops::sin(c.operand(0)))}; }
Tensors vjp_tan(VjpContext& c) { return {c.cotangent() * (c.result(0) * c.result(0) + 1.0)}; }
Tensors vjp_asin(VjpContext& c) {
  return {c.cotangent() * ops::rsqrt(1.0 - c.operand(0) * c.operand(0))};
}
Tensors vjp_acos(VjpContext& c) {
  return {-(c.cotangent() * ops::rsqrt(1.0 - c.operand(0) * c.operand(0)))};
}
Tensors vjp_atan(VjpContext& c) { return {c.cotangent() / (c.operand(0) * c.operand(0) + 1.0)}; }
Tensors vjp_sinh(VjpContext& c) { return {c.cotangent() * ops::cosh(c.operand(0))}; }
Tensors vjp_cosh(VjpContext& c) { return {c.cotangent() * ops::sinh(c.operand(0))}; }
Tensors vjp_tanh(VjpContext& c) { return {c.cotangent() * (1.0 - c.result(0) * c.result(0))}; }
Tensors vjp_asinh(VjpContext& c) {
  return {c.cotangent() * ops::rsqrt(c.operand(0) * c.operand(0) + 1.0)};
}
Tensors vjp_acosh(VjpContext& c) {
  return {c.cotangent() * ops::rsqrt(c.operand(0) * c.operand(0) - 1.0)};
}
Tensors vjp_atanh(VjpContext& c) { return {c.cotangent() / (1.0 - c.operand(0) * c.operand(0))}; }
Tensors vjp_erf(VjpContext& c) {
  return {c.cotangent() * ops::exp(-(c.operand(0) * c.operand(0))) *
          (2.0 * std::numbers::inv_sqrtpi)};
}
Tensors vjp_erfinv(VjpContext& c) {
  return {c.cotangent() * ops::exp(c.result(0) * c.result(0)) * (0.5 / std::numbers::inv_sqrtpi)};
}
Tensors vjp_lgamma(VjpContext& c) { return {c.cotangent() * ops::digamma(c.operand(0))}; }
Tensors vjp_sigmoid(VjpContext& c) { return {c.cotangent() * c.result(0) * (1.0 - c.result(0))}; }
Tensors vjp_relu(VjpContext& c) { return {c.cotangent() * positive(c.result(0))}; }
Tensors vjp_assign(VjpContext& c) { return {c.cotangent()}; }

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

Tensors vjp_scale(VjpContext& c) {
  return {ops::scale(c.cotangent(), c.attrs_as<ScaleAttrs>().scale)};
}

Tensors vjp_clip(VjpContext& c) {
  const auto a = c.attrs_as<ClipAttrs>();
  const Tensor x = c.operand(0);
  Tensor inside;
  const auto also = [&](const Tensor& condition) {
    inside = inside.defined() ? ops::logical_and(inside, condition) : condition;
  };
  if (!a.min.is_none()) also(ops::greater_equal(x, Tensor::number(a.min.as_double())));
  if (!a.max.is_none()) also(ops::less_equal(x, Tensor::number(a.max.as_double())));
  if (!inside.defined()) return {c.cotangent()};
  return {c.cotangent() * mask_of(inside, c.cotangent())};
}

}  // namespace paddle::rules
