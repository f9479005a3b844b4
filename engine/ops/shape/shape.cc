// Rules of shape.yaml.

#include <algorithm>
#include <numeric>

#include "ops/core/compose.h"
#include "ops/core/run_time_attrs.h"
#include "ops/generated/indexing.h"
#include "ops/generated/math.h"
#include "ops/generated/shape.h"
#include "ops/generated/shape_rules.h"

namespace paddle::rules {
namespace {

/// The size of -1 if both shapes contain a 0: computed from the sizes other than 0.
Dim quotient_of_nonzero(const Shape& from, const Shape& to) {
  int64_t have = 1, known = 1;
  for (const Dim& d : from)
    if (d.constant().value_or(0) > 0) have = checked_multiply(have, d.value());
  for (const Dim& d : to)
    if (d.constant().value_or(0) > 0) known = checked_multiply(known, d.value());
  return Dim(have / known);
}

}  // namespace

void infer_reshape(InferContext& c) {
  const auto a = c.attrs_as<ReshapeAttrs>();
  const Shape& from = c.shape(0);
  Shape to = a.shape;
  const Dim total = element_count(std::span<const Dim>(from));
  std::optional<size_t> inferred;
  for (size_t i = 0; i < to.size(); ++i) {
    if (!to[i].is_constant()) continue;
    if (to[i].value() == -1) {
      if (inferred) c.check(false, "only one size may be -1, found ", text(to));
      inferred = i;
    } else if (to[i].value() == 0) {
      // 0 copies the dim, except in a tensor without elements, where it is a size.
      if (total.is_constant() && total.value() == 0) continue;
      c.check(i < from.size(), "size 0 at position ", i, " has no dim of ", c.type(0), " to copy");
      to[i] = from[i];
    }
  }
  Dim known = 1;
  for (size_t i = 0; i < to.size(); ++i)
    if (!inferred || i != *inferred) {
      if (to[i].is_constant() && to[i].value() < 0) c.check(false, "negative size in ", text(to));
      known = known * to[i];
    }
  if (inferred) {
    if (known.is_constant() && known.value() == 0) {
      c.check(total.is_constant() && total.value() == 0, "cannot reshape ", c.type(0), " to ",
              text(a.shape));
      to[*inferred] = quotient_of_nonzero(from, to);
    } else {
      const Dim rest = modulo(total, known);
      c.check(!rest.is_constant() || rest.value() == 0, "cannot reshape ", c.type(0), " to ",
              text(a.shape));
      to[*inferred] = floor_divide(total, known);
      if (!rest.is_constant())
        c.require_equal(rest, 0, str("cannot reshape ", c.type(0), " to ", text(a.shape)));
    }
  } else {
    c.require_equal(total, known, str("cannot reshape ", c.type(0), " to ", text(a.shape)));
  }
  c.result(c.dtype(0), to);
}

void infer_squeeze(InferContext& c) {
  const auto a = c.attrs_as<SqueezeAttrs>();
  const Shape& from = c.shape(0);
  std::vector<bool> wanted(from.size(), !a.axis || a.axis->empty());
  if (a.axis)
    for (const int64_t axis : *a.axis) {
      const int64_t at = c.axis(axis, c.rank(0));
      if (!from.empty()) wanted[static_cast<size_t>(at)] = true;
    }
  Shape to;
  for (size_t i = 0; i < from.size(); ++i)
    if (!wanted[i] || !from[i].is_constant() || from[i].value() != 1) to.push_back(from[i]);
  c.result(c.dtype(0), to);
}

void infer_unsqueeze(InferContext& c) {
  const auto a = c.attrs_as<UnsqueezeAttrs>();
  Shape to = c.shape(0);
  for (const int64_t axis : a.axis) {  // one after the other, each counted in the grown shape
    const int64_t at = c.axis(axis, static_cast<int64_t>(to.size()) + 1);
    to.insert(to.begin() + at, Dim(1));
  }
  c.result(c.dtype(0), to);
}

void infer_flatten(InferContext& c) {
  const auto a = c.attrs_as<FlattenAttrs>();
  const Shape& from = c.shape(0);
  const int64_t start = c.axis(a.start_axis, c.rank(0)), stop = c.axis(a.stop_axis, c.rank(0));
  c.check(start <= stop, "start_axis must be <= stop_axis, found ", a.start_axis, " and ",
          a.stop_axis);
  Shape to;
  Dim merged = 1;
  if (from.empty()) to.push_back(1);
  for (size_t i = 0; i < from.size(); ++i) {
    const auto at = static_cast<int64_t>(i);
    if (at < start || at > stop) {
      to.push_back(from[i]);
    } else {
      merged = merged * from[i];
      if (at == stop) to.push_back(merged);
    }
  }
  c.result(c.dtype(0), to);
}

Layout view_reshape(const Layout& x, const Attrs&, const Dims& shape) {
  Layout out = Layout::contiguous(x.dtype, shape);
  out.offset = x.offset;
  if (x.is_contiguous()) return out;
  // Groups of source axes that are contiguous among themselves can be divided again.
  size_t from = 0, to = 0;
  const size_t from_rank = x.shape.size(), to_rank = shape.size();
  if (x.size() == 0) return out;
  while (from < from_rank || to < to_rank) {
    int64_t from_count = from < from_rank ? x.shape[from] : 1;
    int64_t to_count = to < to_rank ? shape[to] : 1;
    size_t from_end = std::min(from + 1, from_rank), to_end = std::min(to + 1, to_rank);
    while (from_count != to_count) {
      if (from_count < to_count)
        from_count *= x.shape[from_end++];
      else
        to_count *= shape[to_end++];
    }
    // Walk the group from its last axis.
    int64_t expected = 0;
    bool started = false;
    int64_t stride = 1;
    for (size_t i = from_end; i-- > from;) {
      if (x.shape[i] == 1) continue;
      if (!started) {
        stride = x.strides[i];
        started = true;
      } else if (x.strides[i] != expected) {
        out.present = false;
        return out;
      }
      expected = x.strides[i] * x.shape[i];
    }
    for (size_t i = to_end; i-- > to;) {
      out.strides[i] = stride;
      stride *= shape[i];
    }
    from = from_end;
    to = to_end;
  }
  return out;
}

Tensor write_reshape(const Tensor& base, const Tensor& value, const Attrs&) {
  return ops::reshape(value, base.shape());
}

Tensors vjp_reshape(VjpContext& c) { return {ops::reshape(c.cotangent(), c.operand(0).shape())}; }

void infer_transpose(InferContext& c) {
  const auto a = c.attrs_as<TransposeAttrs>();
  const Shape& from = c.shape(0);
  c.check(a.perm.size() == from.size(), "perm has ", a.perm.size(), " entries, x has ", from.size(),
          " dimensions");
  std::vector<bool> seen(from.size());
  Shape to;
  for (const int64_t p : a.perm) {
    const auto axis = static_cast<size_t>(c.axis(p, c.rank(0)));
    c.check(!seen[axis], "axis ", p, " is given twice in perm");
    seen[axis] = true;
    to.push_back(from[axis]);
  }
  c.result(c.dtype(0), to);
}
namespace {

std::vector<int64_t> normal_perm(const Attrs& attrs, size_t rank) {
  std::vector<int64_t> perm = attrs[0].as_ints();
  for (int64_t& p : perm)
    if (p < 0) p += static_cast<int64_t>(rank);
  return perm;
}

std::vector<int64_t> inverse_perm(const Attrs& attrs, size_t rank) {
  const auto perm = normal_perm(attrs, rank);
  std::vector<int64_t> inverse(rank);
  for (size_t i = 0; i < rank; ++i) inverse[static_cast<size_t>(perm[i])] = static_cast<int64_t>(i);
  return inverse;
}

}  // namespace

Layout view_transpose(const Layout& x, const Attrs& attrs, const Dims& shape) {
  Layout out = x;
  out.shape = shape;
  const auto perm = normal_perm(attrs, x.shape.size());
  for (size_t i = 0; i < perm.size(); ++i) out.strides[i] = x.strides[static_cast<size_t>(perm[i])];
  return out;
}

Tensor write_transpose(const Tensor& base, const Tensor& value, const Attrs& attrs) {
  return ops::transpose(value, inverse_perm(attrs, base.shape().size()));
}

Tensors vjp_transpose(VjpContext& c) {
  return {ops::transpose(c.cotangent(), inverse_perm(c.attrs(), c.operand(0).shape().size()))};
}

void infer_expand(InferContext& c) {
  const auto a = c.attrs_as<ExpandAttrs>();
  const Shape& from = c.shape(0);
  c.check(a.shape.size() >= from.size(), "cannot expand ", c.type(0), " to the smaller rank of ",
          text(a.shape));
  Shape to = a.shape;
  const size_t lead = to.size() - from.size();
  for (size_t i = 0; i < to.size(); ++i) {
    const bool keep = to[i].is_constant() && to[i].value() == -1;
    if (i < lead) {
      c.check(!keep, "-1 has no dim of ", c.type(0), " to keep");
      continue;
    }
    const Dim& d = from[i - lead];
    if (keep)
      to[i] = d;
    else if (!(d.is_constant() && d.value() == 1))
      to[i] = c.require_equal(d, to[i], str("cannot expand ", c.type(0), " to ", text(a.shape)));
  }
  c.result(c.dtype(0), to);
}

Layout view_expand(const Layout& x, const Attrs&, const Dims& shape) {
  Layout out = x;
  out.shape = shape;
  out.strides.assign(shape.size(), 0);
  const size_t lead = shape.size() - x.shape.size();
  for (size_t i = lead; i < shape.size(); ++i)
    out.strides[i] = x.shape[i - lead] == 1 && shape[i] != 1 ? 0 : x.strides[i - lead];
  return out;
}

Tensors vjp_expand(VjpContext& c) { return {sum_to(c.cotangent(), c.operand(0).shape())}; }
namespace {

/// Python's slice bounds, symbolic dims included. `negative`: the step runs backwards.
Dim bound(const Dim& at, const Dim& size, bool negative) {
  // Huge constants mean "to the end".
  const auto less_than_zero = at.less(0);
  const Dim from_end = less_than_zero.value_or(false) ? at + size : at;
  if (!negative) return maximum(0, minimum(from_end, size));
  // With a negative stride, -1 is the position before the first element.
  return maximum(-1, minimum(from_end, size - 1));
}

struct SliceAxis {
  size_t axis;
  Dim start, length;
  int64_t stride;
};

SliceAxis normalize_slice(const Shape& shape, int64_t axis, const Dim& start, const Dim& end,
                          int64_t stride) {
  const auto at = static_cast<size_t>(axis < 0 ? axis + static_cast<int64_t>(shape.size()) : axis);
  const Dim& size = shape[at];
  const bool negative = stride < 0;
  const Dim first = bound(start, size, negative);
  // An end of -size-1 or less runs over the first element when going backwards.
  const Dim last = bound(end, size, negative);
  const Dim length = negative ? maximum(0, floor_divide(first - last - stride - 1, -stride))
                              : maximum(0, floor_divide(last - first + stride - 1, stride));
  return {at, first, length, stride};
}

template <class A>
std::vector<SliceAxis> slice_axes(const A& a, const Shape& shape) {
  std::vector<SliceAxis> out;
  for (size_t i = 0; i < a.axes.size(); ++i)
    out.push_back(normalize_slice(shape, a.axes[i], a.starts[i], a.ends[i], a.strides[i]));
  return out;
}

template <class A>
Shape sliced_shape(InferContext& c, const A& a) {
  Shape to = c.shape(0);
  c.check(a.starts.size() == a.axes.size() && a.ends.size() == a.axes.size() &&
              a.strides.size() == a.axes.size(),
          "axes, starts, ends and strides must have the same length");
  std::vector<bool> seen(to.size());
  for (size_t i = 0; i < a.axes.size(); ++i) {
    c.check(c.rank(0) > 0, "a 0-D tensor cannot be sliced");
    const auto axis = static_cast<size_t>(c.axis(a.axes[i], c.rank(0)));
    c.check(!seen[axis], "axis ", axis, " is given twice");
    seen[axis] = true;
    c.check(a.strides[i] != 0, "a stride is 0");
  }
  for (const SliceAxis& s : slice_axes(a, c.shape(0))) to[s.axis] = s.length;
  return to;
}

}  // namespace

void infer_strided_slice(InferContext& c) {
  c.result(c.dtype(0), sliced_shape(c, c.attrs_as<StridedSliceAttrs>()));
}

Layout view_strided_slice(const Layout& x, const Attrs& attrs, const Dims& shape) {
  Layout out = x;
  out.shape = shape;
  const Shape from = to_shape(x.shape);
  for (const SliceAxis& s : slice_axes(StridedSliceAttrs(attrs), from)) {
    if (shape[s.axis] > 0) out.offset += s.start.value() * x.strides[s.axis];
    out.strides[s.axis] = x.strides[s.axis] * s.stride;
  }
  return out;
}

Tensor write_strided_slice(const Tensor& base, const Tensor& value, const Attrs& attrs) {
  const StridedSliceAttrs a(attrs);
  return ops::strided_slice_scatter(base, value, a.axes, a.starts, a.ends, a.strides);
}

Tensors vjp_strided_slice(VjpContext& c) {
  const auto a = c.attrs_as<StridedSliceAttrs>();
  return {ops::strided_slice_scatter(zeros_like(c.operand(0)), c.cotangent(), a.axes, a.starts,
                                     a.ends, a.strides)};
}

void infer_strided_slice_scatter(InferContext& c) {
  const Shape part = sliced_shape(c, c.attrs_as<StridedSliceScatterAttrs>());
  const Shape joined = c.broadcast(part, c.shape(1));
  c.check(joined.size() == part.size(), "value ", c.type(1), " does not fit the slice ",
          text(part));
  for (size_t i = 0; i < part.size(); ++i)
    c.require_equal(joined[i], part[i],
                    str("value ", c.type(1), " does not fit the slice ", text(part)));
  c.result(c.dtype(0), c.shape(0));
}

Tensors vjp_strided_slice_scatter(VjpContext& c) {
  const auto a = c.attrs_as<StridedSliceScatterAttrs>();
  const Tensor& g = c.cotangent();
  Tensors out = c.gradients();
  if (c.needs(0))
    out[0] =
        ops::strided_slice_scatter(g, Tensor::number(0.0), a.axes, a.starts, a.ends, a.strides);
  if (c.needs(1))
    out[1] =
        sum_to(ops::strided_slice(g, a.axes, a.starts, a.ends, a.strides), c.operand(1).shape());
  return out;
}

void infer_view_dtype(InferContext& c) {
  const DType to = c.attrs_as<ViewDtypeAttrs>().shape_or_dtype;
  const int64_t from_bits = info(c.dtype(0)).bits, bits = info(to).bits;
  c.check(from_bits >= 8 && bits >= 8, "whole bytes are needed, not ", text(c.dtype(0)), " and ",
          text(to));
  Shape shape = c.shape(0);
  if (from_bits != bits) {
    c.check(!shape.empty(), "a 0-D tensor cannot change the size of its element");
    const Dim bytes = shape.back() * (from_bits / 8);
    c.check(modulo(bytes, bits / 8).constant().value_or(0) == 0, "the last axis of ", c.type(0),
            " does not divide into elements of ", text(to));
    shape.back() = floor_divide(bytes, bits / 8);
  }
  c.result(to, shape);
}

// --- axes of run time ---

Tensors decompose_squeeze_at(CallContext& c) {
  const Tensor& x = c.operand(0);
  if (x.ndim() == 0) reject("squeeze", "a 0-D tensor has no axes");
  const Tensor at = position_of(c.operand(1), x.ndim(), "squeeze: axis: ");
  return {ops::reshape(x, shape_without(x, at, "squeeze: "))};
}

Tensors decompose_unsqueeze_at(CallContext& c) {
  const Tensor& x = c.operand(0);
  const int64_t rank = x.ndim();
  const Tensor at = position_of(c.operand(1), rank + 1, "unsqueeze: axis: ");
  const Tensor places = numbers_below(rank + 1);
  // A further size of 1 at the end is what the new axis reads.
  const Tensor sizes = ops::concat({ops::shape(x), ops::ones({Dim(1)}, DType::kI64)}, 0);
  const Tensor before = places - ops::cast(ops::greater_than(places, at), DType::kI64);
  const Tensor from = ops::where(ops::equal(places, at), integer(rank), before);
  return {ops::reshape(x, dims_of(ops::index_select(sizes, from, 0), "unsqueeze: "))};
}

}  // namespace paddle::rules
