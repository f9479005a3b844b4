// Rules of reduction.yaml.

#include <algorithm>

#include "ops/core/compose.h"
#include "ops/generated/math.h"
#include "ops/generated/reduce.h"
#include "ops/generated/reduce_rules.h"
#include "ops/generated/shape.h"

namespace paddle::rules {
namespace {

std::vector<int64_t> checked_axes(InferContext& c, const AttrValue& axis) {
  const auto wanted = axis.is_none() ? std::vector<int64_t>() : axis.as_ints();
  return c.axes(wanted, c.rank(0));
}

Shape reduced(const Shape& shape, const std::vector<int64_t>& axes, bool keepdim) {
  Shape out;
  for (size_t i = 0; i < shape.size(); ++i) {
    const bool gone = std::find(axes.begin(), axes.end(), static_cast<int64_t>(i)) != axes.end();
    if (!gone)
      out.push_back(shape[i]);
    else if (keepdim)
      out.push_back(1);
  }
  return out;
}

/// Axes and keepdim of a reduction, read by name because families order them differently.
struct Reduction {
  std::vector<int64_t> axes;
  bool keepdim;
};

Reduction reduction_of(const Op& op, const Attrs& attrs, int64_t rank) {
  const AttrValue& axis = attrs[static_cast<size_t>(op.attr_index("axis"))];
  std::optional<std::vector<int64_t>> axes;
  if (!axis.is_none()) axes = axis.as_ints();
  return {normal_axes(axes, rank), attrs[static_cast<size_t>(op.attr_index("keepdim"))].as_bool()};
}

Shape reduced_shape(InferContext& c) {
  const Op& op = c.op();
  const auto axes = checked_axes(c, c.attrs()[static_cast<size_t>(op.attr_index("axis"))]);
  return reduced(c.shape(0), axes,
                 c.attrs()[static_cast<size_t>(op.attr_index("keepdim"))].as_bool());
}

}  // namespace

void infer_reduce(InferContext& c) { c.result(c.dtype(0), reduced_shape(c)); }

void infer_reduce_bool(InferContext& c) { c.result(DType::kBool, reduced_shape(c)); }

void infer_reduce_nonempty(InferContext& c) {
  const auto axes = checked_axes(c, c.attrs()[static_cast<size_t>(c.op().attr_index("axis"))]);
  for (const int64_t a : axes) {
    const Dim& d = c.shape(0)[static_cast<size_t>(a)];
    c.check(!d.is_constant() || d.value() > 0, "axis ", a, " of ", c.type(0), " is empty");
  }
  infer_reduce(c);
}
namespace {

/// Complex numbers are not reduced to real ones, nor the other way round.
void check_kind(InferContext& c, const std::optional<DType>& dtype) {
  c.check(!dtype || is_complex(*dtype) == is_complex(c.dtype(0)), "dtype cannot be ",
          text(dtype.value_or(c.dtype(0))), " for x of ", text(c.dtype(0)));
}

/// int64 for bool and integers of up to 32 bits, whose sums would soon wrap around.
DType sum_dtype(DType d) {
  return is_bool(d) || (is_integer(d) && info(d).bits <= 32) ? DType::kI64 : d;
}

}  // namespace

void infer_sum(InferContext& c) {
  const auto a = c.attrs_as<SumAttrs>();
  check_kind(c, a.dtype);
  c.result(a.dtype.value_or(sum_dtype(c.dtype(0))), reduced_shape(c));
}

void infer_prod(InferContext& c) {
  const auto a = c.attrs_as<ProdAttrs>();
  check_kind(c, a.dtype);
  c.result(a.dtype.value_or(is_bool(c.dtype(0)) ? DType::kI64 : c.dtype(0)), reduced_shape(c));
}

Tensors vjp_sum(VjpContext& c) {
  const Tensor& x = c.operand(0);
  const Reduction r = reduction_of(c.op(), c.attrs(), x.ndim());
  const Tensor g = ops::cast(restore_axes(c.cotangent(), r.axes, r.keepdim), x.dtype());
  return {ops::expand(g, x.shape())};
}

Tensors vjp_mean(VjpContext& c) {
  const Tensor& x = c.operand(0);
  const Reduction r = reduction_of(c.op(), c.attrs(), x.ndim());
  const Tensor g = c.cotangent() / count_of(x.shape(), r.axes, x.dtype());
  return {ops::expand(restore_axes(g, r.axes, r.keepdim), x.shape())};
}

Tensors vjp_extremum(VjpContext& c) {
  const Tensor& x = c.operand(0);
  const Reduction r = reduction_of(c.op(), c.attrs(), x.ndim());
  const Tensor top = restore_axes(c.result(0), r.axes, r.keepdim);
  const Tensor hit = mask_of(ops::equal(x, top), c.cotangent());
  const Tensor share =
      restore_axes(c.cotangent(), r.axes, r.keepdim) / ops::sum(hit, r.axes, std::nullopt, true);
  return {hit * share};
}
namespace {

/// For each element of the last axis (of `count` elements), the product of the others: down a tree
/// of pairwise products, so that zeros do no harm, to any order.
Tensor product_of_others(const Tensor& x, int64_t count) {
  const int64_t axis = x.ndim() - 1;
  const auto half = [&](const Tensor& t, int64_t first) {
    return ops::strided_slice(t, {axis}, {Dim(first)}, {t.shape().back()}, {2});
  };
  int64_t width = 1;
  while (width < count) width *= 2;
  Shape padding = x.shape();
  padding.back() = Dim(width - count);
  Tensors levels = {width == count ? x : ops::concat({x, full_of(padding, 1, x.dtype())}, axis)};
  for (; width > 1; width /= 2) levels.push_back(half(levels.back(), 0) * half(levels.back(), 1));
  Tensor others = ones_like(levels.back());
  for (size_t i = levels.size() - 1; i-- > 0;) {
    const Tensor pairs =
        ops::stack({others * half(levels[i], 1), others * half(levels[i], 0)}, axis + 1);
    others = ops::reshape(pairs, levels[i].shape());
  }
  return ops::strided_slice(others, {axis}, {Dim(0)}, {Dim(count)}, {1});
}

/// The same by division, for a number of factors that is not known while tracing; gradients of
/// higher order are those without zeros.
Tensor product_of_others_by_division(const Tensor& x, const std::vector<int64_t>& axes) {
  const Tensor zero = ops::equal(x, Tensor::number(0.0));
  const Tensor safe = ops::where(zero, Tensor::number(1.0), x);
  const Tensor zeros = ops::sum(mask_of(zero, x), axes, std::nullopt, true);
  const Tensor rest = ops::prod(safe, axes, true);
  const Tensor none = ops::equal(zeros, Tensor::number(0.0));
  const Tensor one = ops::logical_and(ops::equal(zeros, Tensor::number(1.0)), zero);
  return ops::where(none, rest / safe, ops::where(one, rest, Tensor::number(0.0)));
}

}  // namespace

Tensors vjp_prod(VjpContext& c) {
  const Tensor& x = c.operand(0);
  const Reduction r = reduction_of(c.op(), c.attrs(), x.ndim());
  const Tensor grad = ops::cast(restore_axes(c.cotangent(), r.axes, r.keepdim), x.dtype());
  Dim count = 1;
  std::vector<int64_t> order, back(static_cast<size_t>(x.ndim()));
  for (int64_t i = 0; i < x.ndim(); ++i)
    if (std::find(r.axes.begin(), r.axes.end(), i) == r.axes.end()) order.push_back(i);
  Shape flat;
  for (const int64_t i : order) flat.push_back(x.dim(i));
  for (const int64_t i : r.axes) {
    order.push_back(i);
    count = count * x.dim(i);
  }
  if (!count.is_constant()) return {grad * product_of_others_by_division(x, r.axes)};
  if (count.value() == 0) return {zeros_like(x)};
  flat.push_back(count);
  const Tensor turned = ops::transpose(x, order);
  const Tensor others = product_of_others(ops::reshape(turned, flat), count.value());
  for (size_t i = 0; i < order.size(); ++i)
    back[static_cast<size_t>(order[i])] = static_cast<int64_t>(i);
  return {grad * ops::transpose(ops::reshape(others, turned.shape()), back)};
}

Tensors vjp_logsumexp(VjpContext& c) {
  const Tensor& x = c.operand(0);
  const Reduction r = reduction_of(c.op(), c.attrs(), x.ndim());
  return {restore_axes(c.cotangent(), r.axes, r.keepdim) *
          ops::exp(x - restore_axes(c.result(0), r.axes, r.keepdim))};
}

void infer_arg_extremum(InferContext& c) {
  const auto a = c.attrs_as<ArgmaxAttrs>();
  c.check(a.dtype == DType::kI32 || a.dtype == DType::kI64, "dtype must be int32 or int64, not ",
          text(a.dtype));
  const auto check_size = [&](const Dim& size) {
    c.check(size.equals(0) != true, "there is no element to choose from in ", c.type(0));
  };
  if (!a.axis) {
    check_size(element_count(std::span<const Dim>(c.shape(0))));
    c.result(a.dtype, a.keepdim ? Shape(c.shape(0).size(), Dim(1)) : Shape());
    return;
  }
  const int64_t axis = c.axis(*a.axis, c.rank(0));
  if (c.rank(0) > 0) check_size(c.shape(0)[static_cast<size_t>(axis)]);
  c.result(a.dtype, c.rank(0) == 0 ? Shape() : reduced(c.shape(0), {axis}, a.keepdim));
}

Tensors decompose_mean_as(CallContext& c) {
  const auto a = c.attrs_as<MeanAsAttrs>();
  return {ops::mean(ops::cast(c.operand(0), a.dtype), a.axis, a.keepdim)};
}

Tensors decompose_reduce_as(CallContext& c) {
  const Tensor& x = c.operand(0);
  const Shape& target = c.operand(1).shape();
  const size_t lead = x.shape().size() - target.size();
  bool fits = target.size() <= x.shape().size();
  for (size_t i = 0; fits && i < target.size(); ++i)
    fits = target[i].equals(1) != false || target[i].equals(x.shape()[lead + i]) != false;
  if (!fits) reject("reduce_as", x.type(), " does not reduce to ", text(target));
  const Tensor y = sum_to(x, target);
  return {y.is_same_cell(x) ? ops::assign(x) : y};
}

}  // namespace paddle::rules
