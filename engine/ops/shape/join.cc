// Rules of shape.yaml: joining, splitting and padding.

#include <algorithm>
#include <numeric>

#include "ops/core/attr_words.h"
#include "ops/core/compose.h"
#include "ops/core/run_time_attrs.h"
#include "ops/generated/creation.h"
#include "ops/generated/indexing.h"
#include "ops/generated/math.h"
#include "ops/generated/reduce.h"
#include "ops/generated/shape.h"
#include "ops/generated/shape_rules.h"

namespace paddle::rules {

// --- joins and splits ---

void infer_concat(InferContext& c) {
  const auto a = c.attrs_as<ConcatAttrs>();
  const size_t count = c.list_size(0);
  c.check(count > 0, "no tensors are given");
  c.check(c.rank(0) > 0, "0-D tensors cannot be joined; use stack");
  const auto axis = static_cast<size_t>(c.axis(a.axis, c.rank(0)));
  Shape to = c.shape(0);
  for (size_t i = 1; i < count; ++i) {
    const Shape& next = c.list_type(0, i).shape;
    c.check(next.size() == to.size(), "tensor ", i, " is ", c.list_type(0, i), ", the first is ",
            c.type(0));
    for (size_t d = 0; d < to.size(); ++d)
      to[d] = d == axis ? to[d] + next[d]
                        : c.require_equal(to[d], next[d],
                                          str("sizes differ in axis ", d, " of tensor ", i));
  }
  c.result(c.dtype(0), to);
}

Tensors vjp_concat(VjpContext& c) {
  const auto a = c.attrs_as<ConcatAttrs>();
  const Tensors parts = c.list(0);
  Tensors out = c.gradients();
  Dim at = 0;
  for (size_t i = 0; i < parts.size(); ++i) {
    const Dim next = at + parts[i].dim(a.axis);
    if (c.needs_flat(i)) out[i] = slice_axis(c.cotangent(), a.axis, at, next);
    at = next;
  }
  return out;
}

namespace {

/// Sizes of the sections; -1 stands for the rest.
Shape split_sizes(const Op& op, const AttrValue& how, const Dim& size) {
  if (how.is_int()) {
    const int64_t count = how.as_int();
    if (count <= 0) fail(ErrorCode::kUsage, op.name(), ": cannot split into ", count, " parts");
    if (count > 1000000) fail(ErrorCode::kUsage, op.name(), ": ", count, " parts are too many");
    const Dim rest = modulo(size, count);
    if (!rest.is_constant() || rest.value() != 0)
      fail(ErrorCode::kUsage, op.name(), ": size ", size, " does not divide into ", count,
           " equal parts");
    return Shape(static_cast<size_t>(count), floor_divide(size, count));
  }
  Shape sizes = how.as_dims();
  Dim known = 0;
  std::optional<size_t> open;
  for (size_t i = 0; i < sizes.size(); ++i) {
    if (sizes[i].is_constant() && sizes[i].value() < 0) {
      if (sizes[i].value() != -1 || open)
        fail(ErrorCode::kUsage, op.name(), ": sections ", text(sizes),
             " must be sizes, of which one may be -1");
      open = i;
    } else {
      known = known + sizes[i];
    }
  }
  if (open) sizes[*open] = size - known;
  const auto fits = (open ? known + sizes[*open] : known).equals(size);
  if ((fits && !*fits) || (open && sizes[*open].less(0).value_or(false)))
    fail(ErrorCode::kUsage, op.name(), ": sections ", text(sizes), " do not add up to ", size);
  return sizes;
}

}  // namespace

void infer_split(InferContext& c) {
  const auto a = c.attrs_as<SplitAttrs>();
  c.check(c.rank(0) > 0, "a 0-D tensor cannot be split");
  const auto axis = static_cast<size_t>(c.axis(a.axis, c.rank(0)));
  for (const Dim& size : split_sizes(c.op(), a.num_or_sections, c.shape(0)[axis])) {
    Shape part = c.shape(0);
    part[axis] = size;
    c.result(c.dtype(0), part);
  }
}

Tensors decompose_split(CallContext& c) {
  const auto a = c.attrs_as<SplitAttrs>();
  const Tensor& x = c.operand(0);
  const auto axis = static_cast<size_t>(axis_of("split", a.axis, x.ndim()));
  const Shape sizes = split_sizes(c.op(), a.num_or_sections, x.dim(a.axis));
  Tensors out;
  Dim at = 0;
  for (const Dim& size : sizes) {
    const Tensor part = slice_axis(x, a.axis, at, at + size);
    Shape shape = part.shape();
    shape[axis] = size;
    // Slices end where x does; the reshape rejects sections of run time beyond it.
    out.push_back(same_shape(shape, part.shape()) ? part : ops::reshape(part, shape));
    at = at + size;
  }
  return out;
}

Tensors vjp_split(VjpContext& c) {
  const auto a = c.attrs_as<SplitAttrs>();
  Tensors parts;
  for (size_t i = 0; i < c.result_count(); ++i) parts.push_back(c.cotangent_or_zeros(i));
  return {ops::concat(parts, a.axis)};
}

void infer_stack(InferContext& c) {
  const auto a = c.attrs_as<StackAttrs>();
  c.check(c.list_size(0) > 0, "no tensors are given");
  const int64_t axis = c.axis(a.axis, c.rank(0) + 1);
  Shape to = c.shape(0);
  for (size_t i = 1; i < c.list_size(0); ++i) {
    const Shape& next = c.list_type(0, i).shape;
    c.check(next.size() == to.size(), "tensor ", i, " is ", c.list_type(0, i), ", the first is ",
            c.type(0));
    for (size_t d = 0; d < to.size(); ++d)
      to[d] = c.require_equal(to[d], next[d], str("sizes differ in axis ", d, " of tensor ", i));
  }
  to.insert(to.begin() + axis, Dim(static_cast<int64_t>(c.list_size(0))));
  c.result(c.dtype(0), to);
}

Tensors decompose_stack(CallContext& c) {
  const auto a = c.attrs_as<StackAttrs>();
  Tensors parts = c.list(0);
  for (Tensor& t : parts) t = ops::unsqueeze(t, {a.axis});
  const int64_t axis = a.axis < 0 ? a.axis + parts[0].ndim() : a.axis;
  return {ops::concat(parts, axis)};
}

// --- padding ---

namespace {

/// Borders before and after each axis.
struct Borders {
  std::vector<int64_t> before, after;
};

Borders pad_borders(const Op& op, const std::vector<int64_t>& pad, std::string_view mode,
                    const std::optional<std::string>& data_format, bool from_left, size_t rank) {
  if (data_format)
    require_word(*data_format, "NCL|NLC|NCHW|NHWC|NCDHW|NDHWC", op.name(), ": data_format: ");
  Borders b{std::vector<int64_t>(rank), std::vector<int64_t>(rank)};
  const size_t count = pad.size();
  if (count % 2 != 0 || count > 2 * rank)
    fail(ErrorCode::kUsage, op.name(), ": ", count, " border sizes do not fit ", rank,
         " dimensions");
  if (count == 2 * rank && mode == "constant") {
    for (size_t i = 0; i < rank; ++i) {
      const size_t axis = from_left ? i : rank - 1 - i;
      b.before[axis] = pad[2 * i];
      b.after[axis] = pad[2 * i + 1];
    }
    return b;
  }
  // Spatial axes, the last one first: channels are axis 1, or the last with …C layouts.
  const bool channels_last = data_format && data_format->ends_with('C');
  const size_t last = rank - (channels_last && rank > 2 ? 1 : 0);
  for (size_t i = 0; i < count / 2; ++i) {
    const size_t axis = last - 1 - i;
    if (axis >= rank) fail(ErrorCode::kUsage, op.name(), ": ", count, " border sizes are too many");
    b.before[axis] = pad[2 * i];
    b.after[axis] = pad[2 * i + 1];
  }
  return b;
}

Borders pad_borders(const Op& op, const PadAttrs& a, size_t rank) {
  return pad_borders(op, a.pad, a.mode, a.data_format, a.pad_from_left_axis, rank);
}

}  // namespace

void infer_pad(InferContext& c) {
  const auto a = c.attrs_as<PadAttrs>();
  const Borders b = pad_borders(c.op(), a, c.shape(0).size());
  Shape to = c.shape(0);
  for (size_t i = 0; i < to.size(); ++i) {
    if (a.mode == "reflect" || a.mode == "circular") {
      const int64_t widest = std::max(b.before[i], b.after[i]);
      const auto fits = Dim(widest).less(a.mode == "reflect" ? to[i] : to[i] + 1);
      c.check(widest <= 0 || fits.value_or(true), "border ", widest, " is too wide for axis ", i,
              " of ", c.type(0));
    }
    to[i] = to[i] + b.before[i] + b.after[i];
    c.check(!to[i].less(0).value_or(false), "axis ", i, " would have a negative size");
  }
  c.result(c.dtype(0), to);
}

namespace {

/// x between `before` and `after` further elements in one axis.
Tensor pad_axis(const Tensor& x, int64_t axis, const Dim& before, const Dim& after,
                const PadByAttrs& a) {
  const Dim n = x.dim(axis);
  if (a.mode == "constant") {
    const auto border = [&](const Dim& size) {
      Shape shape = x.shape();
      shape[static_cast<size_t>(axis)] = size;
      return full_of(shape, a.value, x.dtype());
    };
    return ops::concat({border(before), x, border(after)}, axis);
  }
  const Tensor size = dim_value(n, DType::kI64), last = size - integer(1);
  Tensor from = ops::arange(AttrValue(Dim(0)), AttrValue(before + n + after), AttrValue(Dim(1)),
                            DType::kI64) -
                dim_value(before, DType::kI64);
  if (a.mode == "circular")
    from = ops::remainder(from, size);
  else if (a.mode == "reflect")
    from = last - ops::abs(last - ops::abs(from));
  else
    from = ops::minimum(ops::maximum(from, integer(0)), last);
  return ops::index_select(x, from, axis);
}

}  // namespace

Tensors decompose_pad_by(CallContext& c) {
  const auto a = c.attrs_as<PadByAttrs>();
  const Shape sizes = dims_of(c.operand(1), "pad: ");
  // Where the sizes belong: number i + 1 for the size i.
  std::vector<int64_t> places(sizes.size());
  std::iota(places.begin(), places.end(), 1);
  Tensor out = c.operand(0);
  const Borders borders =
      pad_borders(c.op(), places, a.mode, a.data_format, a.pad_from_left_axis, out.shape().size());
  const auto size_at = [&](int64_t place) {
    return place == 0 ? Dim(0) : sizes[static_cast<size_t>(place - 1)];
  };
  for (size_t i = 0; i < borders.before.size(); ++i)
    if (borders.before[i] != 0 || borders.after[i] != 0)
      out = pad_axis(out, static_cast<int64_t>(i), size_at(borders.before[i]),
                     size_at(borders.after[i]), a);
  return {out};
}

Tensors vjp_pad(VjpContext& c) {
  const auto a = c.attrs_as<PadAttrs>();
  const Tensor& x = c.operand(0);
  const Borders b = pad_borders(c.op(), a, x.shape().size());
  Tensor g = c.cotangent();
  for (size_t i = 0; i < b.before.size(); ++i) {
    const auto axis = static_cast<int64_t>(i);
    const int64_t before = b.before[i], after = b.after[i];
    const Dim n = x.dim(axis);
    if (before == 0 && after == 0) continue;
    const auto of_gradient = [&](const Dim& start, const Dim& end) {
      return slice_axis(g, axis, start, end);
    };
    // Negative borders cut; their gradient is zero outside.
    const int64_t cut_before = std::max<int64_t>(0, -before),
                  cut_after = std::max<int64_t>(0, -after);
    const int64_t grown_before = std::max<int64_t>(0, before);
    Tensor core = of_gradient(grown_before, grown_before + n - cut_before - cut_after);
    if (cut_before || cut_after) {
      std::vector<int64_t> sizes(2 * b.before.size());
      sizes[2 * i] = cut_before;
      sizes[2 * i + 1] = cut_after;
      core = ops::pad(core, sizes);
    }
    const auto add_at = [&](const Tensor& value, const Dim& start, const Dim& end) {
      const Tensor now = slice_axis(core, axis, start, end);
      core = ops::strided_slice_scatter(core, now + value, {axis}, {start}, {end}, {1});
    };
    const auto flipped = [&](const Tensor& t) {
      return ops::strided_slice(t, {axis}, {Dim(-1)}, {Dim(0) - t.dim(axis) - 1}, {-1});
    };
    if (a.mode == "replicate") {
      if (before > 0)
        add_at(ops::sum(of_gradient(0, before), std::vector<int64_t>{axis}, std::nullopt, true), 0,
               1);
      if (after > 0)
        add_at(ops::sum(of_gradient(before + n, before + n + after), std::vector<int64_t>{axis},
                        std::nullopt, true),
               n - 1, n);
    } else if (a.mode == "reflect") {
      if (before > 0) add_at(flipped(of_gradient(0, before)), 1, before + 1);
      if (after > 0)
        add_at(flipped(of_gradient(grown_before + n, grown_before + n + after)), n - 1 - after,
               n - 1);
    } else if (a.mode == "circular") {
      if (before > 0) add_at(of_gradient(0, before), n - before, n);
      if (after > 0) add_at(of_gradient(grown_before + n, grown_before + n + after), 0, after);
    }
    g = core;
  }
  return {g};
}

}  // namespace paddle::rules
