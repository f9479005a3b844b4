// Rules of functions.yaml.

#include <cmath>
#include <limits>
#include <numbers>

#include "ops/core/compose.h"
#include "ops/generated/complex.h"
#include "ops/generated/creation.h"
#include "ops/generated/indexing.h"
#include "ops/generated/math.h"
#include "ops/generated/math_rules.h"
#include "ops/generated/nn.h"
#include "ops/generated/reduce.h"
#include "ops/generated/shape.h"

namespace paddle::rules {
namespace {

Tensors pair(VjpContext& c, const Tensor& dx, const Tensor& dy) {
  Tensors out = c.gradients();
  if (c.needs(0)) out[0] = sum_to(dx, c.operand(0).shape());
  if (c.needs(1)) out[1] = sum_to(dy, c.operand(1).shape());
  return out;
}

/// The largest finite number of a floating type.
double largest(DType d) {
  switch (d) {
    case DType::kF16:
      return 65504.0;
    case DType::kBF16:
      return 0x1.FEp127;
    case DType::kF64:
      return std::numeric_limits<double>::max();
    default:
      return static_cast<double>(std::numeric_limits<float>::max());
  }
}

}  // namespace

Tensors vjp_i0(VjpContext& c) { return {c.cotangent() * ops::i1(c.operand(0))}; }

Tensors vjp_i0e(VjpContext& c) {
  const Tensor& x = c.operand(0);
  return {c.cotangent() * (ops::i1e(x) - ops::sign(x) * c.result(0))};
}

// i1(x) / x tends to 1/2 at 0.
Tensors vjp_i1(VjpContext& c) {
  const Tensor& x = c.operand(0);
  const Tensor zero = ops::equal(x, number(0));
  const Tensor safe = ops::where(zero, number(1.0), x);
  const Tensor ratio = ops::where(zero, number(0.5), c.result(0) / safe);
  return {c.cotangent() * (ops::i0(x) - ratio)};
}

Tensors vjp_i1e(VjpContext& c) {
  const Tensor& x = c.operand(0);
  const Tensor zero = ops::equal(x, number(0));
  const Tensor safe = ops::where(zero, number(1.0), x);
  const Tensor ratio = ops::where(zero, number(0.5), c.result(0) / safe);
  return {c.cotangent() * (ops::i0e(x) - ratio - ops::sign(x) * c.result(0))};
}

void infer_polygamma(InferContext& c) {
  const int64_t n = c.attrs_as<PolygammaAttrs>().n;
  c.check(n >= 0, "n must not be negative, not ", n);
  check_32_bits("polygamma", "n", n);
  infer_unary(c);
}

Tensors vjp_polygamma(VjpContext& c) {
  return {c.cotangent() * ops::polygamma(c.operand(0), c.attrs_as<PolygammaAttrs>().n + 1)};
}

Tensors vjp_digamma(VjpContext& c) { return {c.cotangent() * ops::polygamma(c.operand(0), 1)}; }

Tensors vjp_copysign(VjpContext& c) {
  // The sign of the result against that of x; 0 at 0.
  const Tensor dx = c.cotangent() * ops::sign(c.operand(0)) * ops::sign(c.result(0));
  return pair(c, dx, zeros_like(dx));
}

Tensors vjp_hypot(VjpContext& c) {
  const Tensor scaled = c.cotangent() / c.result(0);
  return pair(c, scaled * c.operand(0), scaled * c.operand(1));
}

Tensors vjp_logaddexp(VjpContext& c) {
  const Tensor weight = ops::sigmoid(c.operand(0) - c.operand(1));
  return pair(c, c.cotangent() * weight, c.cotangent() * (1.0 - weight));
}

Tensors vjp_heaviside(VjpContext& c) {
  const Tensor at_zero = mask_of(ops::equal(c.operand(0), number(0)), c.cotangent());
  return pair(c, zeros_like(c.cotangent()), c.cotangent() * at_zero);
}

Tensors decompose_rad2deg(CallContext& c) { return {c.operand(0) * (180 / std::numbers::pi)}; }

Tensors decompose_deg2rad(CallContext& c) { return {c.operand(0) * (std::numbers::pi / 180)}; }

Tensors decompose_logit(CallContext& c) {
  const auto a = c.attrs_as<LogitAttrs>();
  Tensor x = c.operand(0);
  if (a.eps) x = ops::clip(x, AttrValue(*a.eps), AttrValue(1 - *a.eps));
  return {ops::log(x / (1.0 - x))};
}

Tensors decompose_sinc(CallContext& c) {
  const Tensor& x = c.operand(0);
  const Tensor zero = ops::equal(x, number(0));
  const Tensor angle = ops::where(zero, number(1.0), x * std::numbers::pi);
  return {ops::where(zero, number(1.0), ops::sin(angle) / angle)};
}

Tensors decompose_nan_to_num(CallContext& c) {
  const auto a = c.attrs_as<NanToNumAttrs>();
  const Tensor& x = c.operand(0);
  if (!is_float(x.dtype())) return {ops::assign(x)};
  const double most = largest(x.dtype());
  const Tensor finite =
      ops::where(ops::isposinf(x), number(a.posinf.value_or(most)),
                 ops::where(ops::isneginf(x), number(a.neginf.value_or(-most)), x));
  return {ops::where(ops::isnan(x), number(a.nan), finite)};
}

Tensors decompose_ldexp(CallContext& c) {
  const DType dtype = is_float(c.operand(0).dtype()) ? c.operand(0).dtype() : DType::kF32;
  const Tensor y =
      ops::cast(c.operand(1), is_float(c.operand(1).dtype()) ? c.operand(1).dtype() : dtype);
  return {ops::cast(c.operand(0), dtype) * ops::pow(number(2.0), y)};
}

Tensors decompose_lerp(CallContext& c) {
  return {c.operand(0) + c.operand(2) * (c.operand(1) - c.operand(0))};
}

Tensors decompose_isclose(CallContext& c) {
  const auto a = c.attrs_as<IscloseAttrs>();
  const Tensor &x = c.operand(0), &y = c.operand(1);
  const bool floating = is_differentiable(x.dtype());
  const Tensor wide_x = floating ? x : ops::cast(x, DType::kF64),
               wide_y = floating ? y : ops::cast(y, DType::kF64);
  const Tensor near =
      ops::less_equal(ops::abs(wide_x - wide_y), ops::abs(wide_y) * a.rtol + a.atol);
  // An infinite difference is never near; equal infinities are.
  Tensor close = ops::logical_or(ops::equal(x, y), ops::logical_and(near, ops::isfinite(wide_y)));
  if (a.equal_nan) close = ops::logical_or(close, ops::logical_and(ops::isnan(x), ops::isnan(y)));
  return {close};
}

Tensors decompose_allclose(CallContext& c) {
  const auto a = c.attrs_as<AllcloseAttrs>();
  return {ops::all(ops::isclose(c.operand(0), c.operand(1), a.rtol, a.atol, a.equal_nan))};
}

Tensors decompose_equal_all(CallContext& c) {
  if (!same_shape(c.operand(0).shape(), c.operand(1).shape()))
    return {ops::full(Shape(), AttrValue(false), DType::kBool)};
  return {ops::all(ops::equal(c.operand(0), c.operand(1)))};
}

Tensors decompose_increment(CallContext& c) {
  const Tensor& x = c.operand(0);
  return {ops::cast(x + c.attrs_as<IncrementAttrs>().value, x.dtype())};
}

Tensors decompose_multiplex(CallContext& c) {
  const Tensors inputs = c.list(0);
  if (inputs[0].ndim() == 0)
    fail(ErrorCode::kUsage, "multiplex: inputs must have at least one dimension");
  const Tensor& index = c.operand(1);
  if (index.ndim() > 2 || (index.ndim() == 2 && index.dim(1).equals(1) == false) ||
      index.ndim() == 0 || index.dim(0).equals(inputs[0].dim(0)) == false)
    fail(ErrorCode::kUsage, "multiplex: index must have a number for each row of ",
         inputs[0].type(), ", not be ", index.type());
  const Tensor which = ops::reshape(ops::cast(c.operand(1), DType::kI64), Shape{-1, 1});
  const Tensor row = ops::cumsum(ones_like(which), int64_t{0}) - Tensor::number(int64_t{1});
  return {ops::gather_nd(ops::stack(inputs, 0), ops::concat({which, row}, 1))};
}

Tensors decompose_add_n(CallContext& c) {
  const Tensors inputs = c.list(0);
  Tensor out = inputs[0];
  for (size_t i = 1; i < inputs.size(); ++i) out = out + inputs[i];
  return {inputs.size() == 1 ? ops::assign(out) : out};
}
namespace {

Tensor truth(const Shape& shape, bool value) {
  return ops::full(shape, AttrValue(value), DType::kBool);
}

}  // namespace

Tensors decompose_isreal(CallContext& c) {
  const Tensor& x = c.operand(0);
  if (is_complex(x.dtype())) return {ops::equal(ops::imag(x), number(0.0))};
  return {truth(x.shape(), true)};
}

Tensors decompose_angle(CallContext& c) {
  const Tensor& x = c.operand(0);
  if (is_complex(x.dtype())) return {ops::complex_angle(x)};
  const Tensor turned = ops::where(ops::less_than(x, number(0)), number(std::numbers::pi), x * 0.0);
  return {ops::where(ops::isnan(x), x, turned)};
}

Tensors decompose_frexp(CallContext& c) {
  const Tensor& x = c.operand(0);
  const Tensor size = ops::abs(ops::detach(x));
  const Tensor plain = ops::logical_and(ops::greater_than(size, number(0)), ops::isfinite(size));
  const Tensor safe = ops::where(plain, size, number(1.0));
  // A logarithm may be off by one at powers of two; the mantissa tells.
  Tensor exponent = ops::floor(ops::log2(safe)) + 1.0;
  const auto mantissa_of = [&] { return safe / ops::pow(number(2.0), exponent); };
  const auto step = [&](const Tensor& where) { return mask_of(where, safe); };
  exponent = exponent + step(ops::greater_equal(mantissa_of(), number(1.0)));
  exponent = exponent - step(ops::less_than(mantissa_of(), number(0.5)));
  exponent = ops::where(plain, exponent, number(0));
  return {x / ops::pow(number(2.0), exponent), exponent};
}

Tensors decompose_multigammaln(CallContext& c) {
  const int64_t p = c.attrs_as<MultigammalnAttrs>().p;
  const Tensor& x = c.operand(0);
  if (p < 1 || p > 1024) reject("multigammaln", "p must lie in [1, 1024], not ", p);
  const auto dimension = static_cast<double>(p);
  Tensor sum = ops::lgamma(x) + dimension * (dimension - 1) / 4 * std::log(std::numbers::pi);
  for (int64_t i = 1; i < p; ++i) sum = sum + ops::lgamma(x - static_cast<double>(i) / 2);
  return {sum};
}

}  // namespace paddle::rules
