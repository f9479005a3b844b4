// Rules of cumulative.yaml.

#include <limits>

#include "ops/core/compose.h"
#include "ops/generated/indexing.h"
#include "ops/generated/math.h"
#include "ops/generated/reduce.h"
#include "ops/generated/reduce_rules.h"
#include "ops/generated/shape.h"

namespace paddle::rules {

void infer_cumulative(InferContext& c) {
  const auto a = c.attrs_as<CumsumAttrs>();
  c.check(!a.dtype || is_complex(*a.dtype) == is_complex(c.dtype(0)), "dtype cannot be ",
          text(a.dtype.value_or(c.dtype(0))), " for x of ", text(c.dtype(0)));
  const bool whole = is_bool(c.dtype(0)) || is_integer(c.dtype(0));
  const DType dtype = a.dtype.value_or(whole ? DType::kI64 : c.dtype(0));
  if (!a.axis) {
    c.result(dtype, {element_count(std::span<const Dim>(c.shape(0)))});
    return;
  }
  c.axis(*a.axis, c.rank(0));
  c.result(dtype, c.shape(0));
}

namespace {

Shape scanned_shape(InferContext& c, const std::optional<int64_t>& axis) {
  if (!axis) return {element_count(std::span<const Dim>(c.shape(0)))};
  c.axis(*axis, c.rank(0));
  return c.shape(0);
}

/// The reversed cumulative sum along an axis. The total minus the running sum would lose what is
/// small compared with the total, and spread an infinity to all elements.
Tensor reversed_cumsum(const Tensor& x, int64_t axis) {
  if (x.ndim() == 0) return x;
  return ops::flip(ops::cumsum(ops::flip(x, {axis}), axis), {axis});
}

}  // namespace

Tensors vjp_cumsum(VjpContext& c) {
  const auto a = c.attrs_as<CumsumAttrs>();
  const Tensor& x = c.operand(0);
  const Tensor g = ops::cast(c.cotangent(), x.dtype());
  if (x.ndim() == 0) return {ops::reshape(g, {})};
  const Tensor after = reversed_cumsum(g, a.axis.value_or(0));
  return {a.axis ? after : ops::reshape(after, x.shape())};
}

void infer_cumprod(InferContext& c) {
  const auto a = c.attrs_as<CumprodAttrs>();
  c.result(a.dtype.value_or(is_bool(c.dtype(0)) ? DType::kI64 : c.dtype(0)),
           scanned_shape(c, a.dim));
}

Tensors vjp_cumprod(VjpContext& c) {
  const auto a = c.attrs_as<CumprodAttrs>();
  const Tensor given = c.operand(0);
  const Tensor x = a.dim ? given : ops::reshape(given, Shape{-1});
  const int64_t axis = a.dim.value_or(0);
  const Tensor g = ops::cast(c.cotangent(), x.dtype());
  if (x.ndim() == 0) return {g};
  // After the first zero every product is 0; at it, the gradient is that of the others' product.
  const Tensor zero = ops::equal(x, Tensor::number(0.0));
  const Tensor seen = ops::cumsum(ops::cast(zero, DType::kI64), axis);
  const Tensor first = ops::logical_and(zero, ops::equal(seen, integer(1)));
  const Tensor others = ops::cumprod(ops::where(first, Tensor::number(1.0), x), axis);
  const Tensor safe = ops::where(zero, Tensor::number(1.0), x);
  const Tensor product = ops::cumprod(x, axis);
  const Tensor before = ops::where(ops::equal(seen, integer(0)),
                                   reversed_cumsum(g * product, axis) / safe, Tensor::number(0.0));
  const Tensor dx = ops::where(first, reversed_cumsum(g * others, axis), before);
  return {a.dim ? dx : ops::reshape(dx, given.shape())};
}

void infer_cumulative_extremum(InferContext& c) {
  const auto a = c.attrs_as<CummaxAttrs>();
  const Shape out = scanned_shape(c, a.axis);
  c.check(a.dtype == DType::kI32 || a.dtype == DType::kI64, "dtype must be int32 or int64, not ",
          text(a.dtype));
  c.result(c.dtype(0), out);
  c.result(a.dtype, out);
}

Tensors vjp_cumulative_extremum(VjpContext& c) {
  const auto a = c.attrs_as<CummaxAttrs>();
  const Tensor& x = c.operand(0);
  if (x.ndim() == 0) return {ops::reshape(c.cotangent_or_zeros(0), Shape())};
  const Tensor zeros = a.axis ? zeros_like(x) : ops::reshape(zeros_like(x), Shape{-1});
  return {ops::reshape(
      ops::scatter_along(zeros, c.result(1), c.cotangent_or_zeros(0), a.axis.value_or(0), "add"),
      x.shape())};
}

void infer_logcumsumexp(InferContext& c) {
  const auto a = c.attrs_as<LogcumsumexpAttrs>();
  c.result(a.dtype.value_or(c.dtype(0)), scanned_shape(c, a.axis));
}

Tensors vjp_logcumsumexp(VjpContext& c) {
  const auto a = c.attrs_as<LogcumsumexpAttrs>();
  const Tensor& given = c.operand(0);
  const Tensor x = a.axis ? given : ops::reshape(given, Shape{-1});
  const Tensor g = ops::cast(c.cotangent(), x.dtype()), y = ops::cast(c.result(0), x.dtype());
  if (x.ndim() == 0) return {g};
  const int64_t axis = a.axis.value_or(0);
  if (x.dim(axis).equals(0) == true) return {zeros_like(given)};
  // Σ_{j >= i} g_j exp(x_i - y_j), whose terms may differ by more than the exponents of the type:
  // as the logarithms of the sums of the positive and of the negative g_j.
  const Tensor zero = Tensor::number(0.0), one = Tensor::number(1.0);
  const Tensor lowest = Tensor::number(-std::numeric_limits<double>::infinity());
  const Tensor is_reached = ops::greater_than(y, lowest);
  const auto of_sign = [&](const Tensor& positive) {
    const Tensor counts = ops::logical_and(ops::greater_than(positive, zero), is_reached);
    const Tensor logs = ops::where(counts, ops::log(ops::where(counts, positive, one)) - y, lowest);
    const Tensor sums = ops::flip(ops::logcumsumexp(ops::flip(logs, {axis}), axis), {axis});
    return ops::exp(x + sums);
  };
  const Tensor sum = of_sign(g) - of_sign(-g);
  // A cotangent that is not a number has no sign.
  const Tensor plain = reversed_cumsum(g, axis);
  const Tensor dx = ops::where(ops::isnan(plain), plain, sum);
  return {a.axis ? dx : ops::reshape(dx, given.shape())};
}

}  // namespace paddle::rules
