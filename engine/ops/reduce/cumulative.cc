// Rules of cumulative.yaml.

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

Tensors vjp_cumsum(VjpContext& c) {
  // The reversed cumulative sum: the total minus the running sum before each element.
  const auto a = c.attrs_as<CumsumAttrs>();
  const Tensor& x = c.operand(0);
  const Tensor g = ops::cast(c.cotangent(), x.dtype());
  if (x.ndim() == 0) return {ops::reshape(g, {})};
  const int64_t axis = a.axis.value_or(0);
  const Tensor after =
      ops::sum(g, std::vector<int64_t>{axis}, std::nullopt, true) - ops::cumsum(g, axis) + g;
  return {a.axis ? after : ops::reshape(after, x.shape())};
}
namespace {

Shape scanned_shape(InferContext& c, const std::optional<int64_t>& axis) {
  if (!axis) return {element_count(std::span<const Dim>(c.shape(0)))};
  c.axis(*axis, c.rank(0));
  return c.shape(0);
}

/// The reversed cumulative sum along an axis.
Tensor sum_behind(const Tensor& x, int64_t axis) {
  if (x.ndim() == 0) return x;
  return ops::sum(x, std::vector<int64_t>{axis}, std::nullopt, true) - ops::cumsum(x, axis) + x;
}

}  // namespace

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
  // Behind the first zero every product is 0; at it, the gradient is that of the others' product.
  const Tensor zero = ops::equal(x, Tensor::number(0.0));
  const Tensor seen = ops::cumsum(ops::cast(zero, DType::kI64), axis);
  const Tensor first = ops::logical_and(zero, ops::equal(seen, integer(1)));
  const Tensor others = ops::cumprod(ops::where(first, Tensor::number(1.0), x), axis);
  const Tensor safe = ops::where(zero, Tensor::number(1.0), x);
  const Tensor product = ops::cumprod(x, axis);
  const Tensor before = ops::where(ops::equal(seen, integer(0)),
                                   sum_behind(g * product, axis) / safe, Tensor::number(0.0));
  const Tensor dx = ops::where(first, sum_behind(g * others, axis), before);
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
  // exp(x_i) Σ_{j >= i} g_j exp(-y_j), shifted by the largest x so that nothing overflows.
  const Tensor shift = ops::detach(ops::max(x, std::vector<int64_t>{axis}, true));
  const Tensor dx = ops::exp(x - shift) * sum_behind(g * ops::exp(shift - y), axis);
  return {a.axis ? dx : ops::reshape(dx, given.shape())};
}

}  // namespace paddle::rules
