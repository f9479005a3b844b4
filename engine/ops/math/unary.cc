// Rules of unary.yaml.

#include <complex>
#include <numbers>

#include "ops/core/call.h"
#include "ops/core/compose.h"
#include "ops/generated/complex.h"
#include "ops/generated/math.h"
#include "ops/generated/math_rules.h"
#include "ops/generated/nn_rules.h"

namespace paddle::rules {

void infer_unary(InferContext& c) { c.result(c.dtype(0), c.shape(0)); }

void infer_same(InferContext& c) { c.result(c.dtype(0), c.shape(0)); }

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

Tensors vjp_abs(VjpContext& c) { return {c.cotangent() * ops::sign(c.plain_operand(0))}; }

// Of a complex number z / |z|: a turn about 0 is seen, a change of size is not.
Tensors vjp_sign(VjpContext& c) {
  const Tensor& x = c.plain_operand(0);
  if (!is_complex(x.dtype())) return {Tensor()};
  const Tensor& sign = c.plain_result(0);
  const Tensor size = ops::abs(x);
  const Tensor safe = ops::where(ops::equal(size, Tensor::number(0.0)), Tensor::number(1.0), size);
  const Tensor along = ops::real(c.cotangent() * ops::conj(sign));
  return {(c.cotangent() - sign * along) / safe};
}

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
  const Tensor& x = c.operand(0);
  // The root of the product has another branch cut.
  if (is_complex(x.dtype())) return {c.cotangent() * ops::rsqrt(x - 1.0) * ops::rsqrt(x + 1.0)};
  return {c.cotangent() * ops::rsqrt(x * x - 1.0)};
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

Tensors vjp_assign(VjpContext& c) { return {c.cotangent()}; }

Tensors vjp_scale(VjpContext& c) {
  const AttrValue& scale = c.attrs_as<ScaleAttrs>().scale;
  const bool complex = scale.is_complex();
  return {ops::scale(c.cotangent(), complex ? AttrValue(std::conj(scale.as_complex())) : scale)};
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

Tensors decompose_scale_act(CallContext& c) {
  const auto a = c.attrs_as<ScaleActAttrs>();
  const Tensor y = ops::scale(c.operand(0), a.scale, a.bias, a.bias_after_scale);
  if (!a.act) return {y};
  const Op& act = get_op(*a.act);
  if (act.operands().size() != 1 || act.results().size() != 1 ||
      act.operands()[0].kind != OperandKind::kTensor)
    fail(ErrorCode::kUsage, "scale: '", *a.act, "' is not an activation");
  return {call_single(act, {y}, default_attrs(act))};
}

}  // namespace paddle::rules
