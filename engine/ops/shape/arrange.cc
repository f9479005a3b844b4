// Rules of arrange.yaml.

#include <algorithm>
#include <numeric>

#include "ops/core/compose.h"
#include "ops/core/run_time_attrs.h"
#include "ops/generated/indexing.h"
#include "ops/generated/math.h"
#include "ops/generated/shape.h"
#include "ops/generated/shape_rules.h"
#include "ops/generated/signal.h"

namespace paddle::rules {
namespace {

Tensors split_at(const Tensor& x, int64_t axis, const std::vector<Dim>& cuts) {
  Tensors out;
  Dim start = 0;
  for (size_t i = 0; i <= cuts.size(); ++i) {
    const Dim end = i < cuts.size() ? cuts[i] : x.dim(axis);
    out.push_back(slice_axis(x, axis, start, end));
    start = end;
  }
  return out;
}

Tensors split_tensor(const char* op, const Tensor& x, const AttrValue& how, int64_t given) {
  const int64_t axis = axis_of(op, given, x.ndim());
  if (!how.is_int()) {
    // Indices may be negative, in any order and beyond the end, as in Python's slices.
    Tensors out;
    Dim start = 0;
    for (const int64_t at : how.as_ints()) {
      out.push_back(slice_axis(x, axis, start, at));
      start = at;
    }
    out.push_back(slice_axis(x, axis, start, x.dim(axis)));
    return out;
  }
  const int64_t n = how.as_int(), size = x.dim(axis).value();
  constexpr int64_t kMaxParts = 1 << 12;
  if (n <= 0 || n > kMaxParts)
    reject(op, "the number of parts must be from 1 to ", kMaxParts, ", not ", n);
  std::vector<Dim> cuts;
  int64_t at = 0;
  for (int64_t i = 0; i + 1 < n; ++i) cuts.push_back(at += size / n + (i < size % n ? 1 : 0));
  return split_at(x, axis, cuts);
}

Tensors slices_along(const char* op, const Tensor& x, int64_t given) {
  const int64_t axis = axis_of(op, given, x.ndim());
  Tensors out;
  for (int64_t i = 0; i < x.dim(axis).value(); ++i)
    out.push_back(ops::squeeze(slice_axis(x, axis, i, i + 1), Axes{axis}));
  return out;
}

Tensor with_rank(const Tensor& x, int64_t rank) {
  if (x.ndim() >= rank) return ops::assign(x);
  if (x.ndim() == 0) return ops::reshape(x, Shape(static_cast<size_t>(rank), Dim(1)));
  if (rank == 2) return ops::unsqueeze(x, {0});
  return x.ndim() == 1 ? ops::unsqueeze(x, {0, 2}) : ops::unsqueeze(x, {2});
}

Tensors each_with_rank(const Tensors& inputs, int64_t rank) {
  Tensors out;
  for (const Tensor& x : inputs) out.push_back(with_rank(x, rank));
  return out;
}

Tensor exchanged(const Tensor& x, int64_t a, int64_t b) {
  Axes perm(x.shape().size());
  std::iota(perm.begin(), perm.end(), int64_t{0});
  std::swap(perm[static_cast<size_t>(a)], perm[static_cast<size_t>(b)]);
  return ops::transpose(x, perm);
}

}  // namespace

Tensors decompose_flip(CallContext& c) {
  const Tensor& x = c.operand(0);
  Axes axes, strides;
  Shape starts, ends;
  for (const int64_t given : c.attrs_as<FlipAttrs>().axis) {
    axes.push_back(axis_of("flip", given, x.ndim()));
    starts.push_back(-1);
    ends.push_back(Dim(0) - x.dim(axes.back()) - 1);
    strides.push_back(-1);
  }
  return {axes.empty() ? ops::assign(x)
                       : ops::assign(ops::strided_slice(x, axes, starts, ends, strides))};
}

Tensors decompose_roll(CallContext& c) {
  const auto a = c.attrs_as<RollAttrs>();
  const Tensor& x = c.operand(0);
  if (!a.axis || a.axis->empty()) {
    const Tensor flat = ops::reshape(x, Shape{-1});
    return {ops::reshape(ops::roll(flat, a.shifts, Axes{0}), x.shape())};
  }
  if (a.shifts.size() != a.axis->size())
    reject("roll", a.shifts.size(), " shifts are given for ", a.axis->size(), " axes");
  Tensor out = x;
  for (size_t i = 0; i < a.shifts.size(); ++i) {
    const int64_t axis = axis_of("roll", (*a.axis)[i], x.ndim());
    const Dim n = x.dim(axis);
    if (n.constant() == 0) continue;
    const Dim cut = modulo(Dim(-a.shifts[i]), n);
    if (cut.constant() == 0) continue;
    out = ops::concat({slice_axis(out, axis, cut, n), slice_axis(out, axis, 0, cut)}, axis);
  }
  return {out.is_same_cell(x) ? ops::assign(x) : out};
}

Tensors decompose_roll_by(CallContext& c) {
  const auto a = c.attrs_as<RollByAttrs>();
  const Tensor &x = c.operand(0), &shifts = c.operand(1);
  if (!a.axis || a.axis->empty()) {
    const Tensor flat = ops::reshape(x, Shape{-1});
    return {ops::reshape(ops::roll_by(flat, shifts, Axes{0}), x.shape())};
  }
  Axes axes = *a.axis;
  Tensors sizes;
  for (int64_t& axis : axes) {
    axis = axis_of("roll", axis, x.ndim());
    sizes.push_back(ops::maximum(dim_value(x.dim(axis), DType::kI64), integer(1)));
  }
  const Dim count(static_cast<int64_t>(axes.size()));
  if (shifts.ndim() > 1 || !(shifts.ndim() == 0 ? Dim(1) : shifts.dim(0)).same(count))
    reject("roll", "shifts of ", shifts.type(), " are given for ", count, " axes");
  const Tensor left = ops::neg(ops::reshape(ops::cast(shifts, DType::kI64), Shape{count}));
  const Shape cuts = dims_of(ops::remainder(left, ops::stack(sizes, 0)), "roll: shifts: ");
  Tensor out = x;
  for (size_t i = 0; i < axes.size(); ++i)
    out = ops::concat(
        {slice_axis(out, axes[i], cuts[i], x.dim(axes[i])), slice_axis(out, axes[i], 0, cuts[i])},
        axes[i]);
  return {out};
}

Tensors decompose_rot90(CallContext& c) {
  const auto a = c.attrs_as<Rot90Attrs>();
  const Tensor& x = c.operand(0);
  if (a.axes.size() != 2) reject("rot90", "axes must name two axes");
  const int64_t from = axis_of("rot90", a.axes[0], x.ndim()),
                to = axis_of("rot90", a.axes[1], x.ndim());
  if (from == to) reject("rot90", "axes must be different");
  switch (((a.k % 4) + 4) % 4) {
    case 0:
      return {ops::assign(x)};
    case 1:
      return {exchanged(ops::flip(x, {to}), from, to)};
    case 2:
      return {ops::flip(x, {from, to})};
    default:
      return {ops::flip(exchanged(x, from, to), {to})};
  }
}

Tensors decompose_tile(CallContext& c) {
  Shape times = c.attrs_as<TileAttrs>().repeat_times;
  Shape sizes = c.operand(0).shape();
  const size_t rank = std::max(times.size(), sizes.size());
  times.insert(times.begin(), rank - times.size(), Dim(1));
  sizes.insert(sizes.begin(), rank - sizes.size(), Dim(1));
  Shape apart, wide, joined;
  for (size_t i = 0; i < rank; ++i) {
    if (times[i].is_constant() && times[i].value() < 0)
      reject("tile", "repeat_times must not be negative");
    apart.insert(apart.end(), {Dim(1), sizes[i]});
    wide.insert(wide.end(), {times[i], sizes[i]});
    joined.push_back(times[i] * sizes[i]);
  }
  return {ops::reshape(ops::expand(ops::reshape(c.operand(0), apart), wide), joined)};
}

Tensors decompose_repeat_interleave(CallContext& c) {
  const auto a = c.attrs_as<RepeatInterleaveAttrs>();
  Tensor x = c.operand(0);
  if (!a.axis) x = ops::reshape(x, Shape{-1});
  const int64_t axis =
      axis_of("repeat_interleave", a.axis.value_or(0), std::max<int64_t>(1, x.ndim()));
  if (x.ndim() == 0) x = ops::reshape(x, Shape{1});
  const std::vector<int64_t> repeats = a.repeats.as_ints();
  for (const int64_t n : repeats)
    if (n < 0) reject("repeat_interleave", "repeats must not be negative, found ", n);
  const Dim total = std::accumulate(repeats.begin(), repeats.end(), Dim(0));
  const Dim size = repeats.size() == 1 ? x.dim(axis) * total : total;
  if (a.output_size && size.equals(*a.output_size) == false)
    reject("repeat_interleave", "output_size is ", *a.output_size, ", the repeats give ", size);
  if (repeats.size() == 1) {
    Shape wide = x.shape(), joined = x.shape();
    wide.insert(wide.begin() + axis + 1, Dim(repeats[0]));
    joined[static_cast<size_t>(axis)] = joined[static_cast<size_t>(axis)] * repeats[0];
    return {ops::reshape(ops::expand(ops::unsqueeze(x, {axis + 1}), wide), joined)};
  }
  if (x.dim(axis).equals(static_cast<int64_t>(repeats.size())) == false)
    reject("repeat_interleave", repeats.size(), " repeats for an axis of ", x.dim(axis));
  Tensors pieces;
  for (size_t i = 0; i < repeats.size(); ++i) {
    Shape wide = x.shape();
    wide[static_cast<size_t>(axis)] = repeats[i];
    pieces.push_back(ops::expand(
        slice_axis(x, axis, static_cast<int64_t>(i), static_cast<int64_t>(i) + 1), wide));
  }
  return {ops::concat(pieces, axis)};
}

Tensors decompose_expand_as(CallContext& c) {
  return {ops::expand(c.operand(0), c.operand(1).shape())};
}

Tensors decompose_view_as(CallContext& c) {
  return {ops::reshape(c.operand(0), c.operand(1).shape())};
}

Tensors decompose_broadcast_tensors(CallContext& c) {
  const Tensors inputs = c.list(0);
  Tensor sum;
  for (const Tensor& x : inputs) {
    const Tensor zero = full_of(x.shape(), 0, DType::kI32);
    sum = sum.defined() ? sum + zero : zero;
  }
  Tensors out;
  for (const Tensor& x : inputs) out.push_back(ops::expand(x, sum.shape()));
  return out;
}

Tensors decompose_swapaxes(CallContext& c) {
  const auto a = c.attrs_as<SwapaxesAttrs>();
  const int64_t rank = c.operand(0).ndim();
  return {exchanged(c.operand(0), axis_of("swapaxes", a.axis0, rank),
                    axis_of("swapaxes", a.axis1, rank))};
}

Tensors decompose_moveaxis(CallContext& c) {
  const auto a = c.attrs_as<MoveaxisAttrs>();
  const Tensor& x = c.operand(0);
  if (a.source.size() != a.destination.size())
    reject("moveaxis", "source and destination differ in length");
  Axes perm(x.shape().size(), -1);
  std::vector<bool> used(x.shape().size(), false);
  for (size_t i = 0; i < a.source.size(); ++i) {
    const auto from = static_cast<size_t>(axis_of("moveaxis", a.source[i], x.ndim()));
    const auto to = static_cast<size_t>(axis_of("moveaxis", a.destination[i], x.ndim()));
    if (used[from] || perm[to] >= 0) reject("moveaxis", "an axis is named twice");
    used[from] = true;
    perm[to] = static_cast<int64_t>(from);
  }
  size_t next = 0;
  for (int64_t& axis : perm) {
    if (axis >= 0) continue;
    while (used[next]) ++next;
    axis = static_cast<int64_t>(next++);
  }
  return {ops::transpose(x, perm)};
}

Tensors decompose_t(CallContext& c) {
  const Tensor& x = c.operand(0);
  if (x.ndim() > 2) reject("t", "input must have at most two dimensions, not ", x.type());
  return {x.ndim() < 2 ? ops::assign(x) : ops::transpose(x, {1, 0})};
}

Tensors decompose_matrix_transpose(CallContext& c) {
  const Tensor& x = c.operand(0);
  if (x.ndim() < 2)
    reject("matrix_transpose", "x must have at least two dimensions, not ", x.type());
  return {exchanged(x, x.ndim() - 2, x.ndim() - 1)};
}

Tensors decompose_unflatten(CallContext& c) {
  const auto a = c.attrs_as<UnflattenAttrs>();
  const Tensor& x = c.operand(0);
  const int64_t axis = axis_of("unflatten", a.axis, x.ndim());
  Shape shape = x.shape(), inner = a.shape;
  Dim known = 1;
  size_t open = inner.size();
  for (size_t i = 0; i < inner.size(); ++i) {
    if (inner[i].constant() == -1)
      open = i;
    else
      known = known * inner[i];
  }
  if (open < inner.size()) inner[open] = floor_divide(x.dim(axis), known);
  shape.erase(shape.begin() + axis);
  shape.insert(shape.begin() + axis, inner.begin(), inner.end());
  return {ops::reshape(x, shape)};
}

Tensors decompose_unbind(CallContext& c) {
  return slices_along("unbind", c.operand(0), c.attrs_as<UnbindAttrs>().axis);
}

Tensors decompose_unstack(CallContext& c) {
  const auto a = c.attrs_as<UnstackAttrs>();
  Tensors out = slices_along("unstack", c.operand(0), a.axis);
  if (a.num && *a.num != static_cast<int64_t>(out.size()))
    reject("unstack", "num is ", *a.num, ", the axis has ", out.size());
  return out;
}

Tensors decompose_chunk(CallContext& c) {
  const auto a = c.attrs_as<ChunkAttrs>();
  return ops::split(c.operand(0), AttrValue(a.chunks), a.axis);
}

Tensors decompose_tensor_split(CallContext& c) {
  const auto a = c.attrs_as<TensorSplitAttrs>();
  return split_tensor("tensor_split", c.operand(0), a.num_or_indices, a.axis);
}

Tensors decompose_hsplit(CallContext& c) {
  const Tensor& x = c.operand(0);
  return split_tensor("hsplit", x, c.attrs_as<HsplitAttrs>().num_or_indices, x.ndim() > 1 ? 1 : 0);
}

Tensors decompose_vsplit(CallContext& c) {
  if (c.operand(0).ndim() < 2) reject("vsplit", "x must have at least two dimensions");
  return split_tensor("vsplit", c.operand(0), c.attrs_as<VsplitAttrs>().num_or_indices, 0);
}

Tensors decompose_dsplit(CallContext& c) {
  if (c.operand(0).ndim() < 3) reject("dsplit", "x must have at least three dimensions");
  return split_tensor("dsplit", c.operand(0), c.attrs_as<DsplitAttrs>().num_or_indices, 2);
}

Tensors decompose_hstack(CallContext& c) {
  const Tensors x = each_with_rank(c.list(0), 1);
  return {ops::concat(x, x[0].ndim() > 1 ? 1 : 0)};
}

Tensors decompose_vstack(CallContext& c) { return {ops::concat(each_with_rank(c.list(0), 2), 0)}; }

Tensors decompose_dstack(CallContext& c) { return {ops::concat(each_with_rank(c.list(0), 3), 2)}; }

Tensors decompose_column_stack(CallContext& c) {
  Tensors columns;
  for (const Tensor& x : c.list(0))
    columns.push_back(x.ndim() < 2 ? ops::reshape(x, Shape{-1, 1}) : x);
  return {ops::concat(columns, 1)};
}

Tensors decompose_atleast_1d(CallContext& c) { return each_with_rank(c.list(0), 1); }

Tensors decompose_atleast_2d(CallContext& c) { return each_with_rank(c.list(0), 2); }

Tensors decompose_atleast_3d(CallContext& c) { return each_with_rank(c.list(0), 3); }

Tensors decompose_meshgrid(CallContext& c) {
  const Tensors args = c.list(0);
  Shape full;
  for (const Tensor& x : args) {
    if (x.ndim() > 1) reject("meshgrid", "every tensor must be a vector, not ", x.type());
    full.push_back(x.ndim() == 0 ? Dim(1) : x.dim(0));
  }
  Tensors out;
  for (size_t i = 0; i < args.size(); ++i) {
    Shape along(args.size(), Dim(1));
    along[i] = full[i];
    out.push_back(ops::expand(ops::reshape(args[i], along), full));
  }
  return out;
}

Tensors decompose_slice(CallContext& c) {
  const auto a = c.attrs_as<SliceAttrs>();
  return {ops::strided_slice(c.operand(0), a.axes, a.starts, a.ends, Axes(a.axes.size(), 1))};
}

Tensors decompose_crop(CallContext& c) {
  const auto a = c.attrs_as<CropAttrs>();
  const Tensor& x = c.operand(0);
  Axes axes;
  Shape starts, ends;
  if ((a.shape && a.shape->size() != x.shape().size()) ||
      (a.offsets && a.offsets->size() != x.shape().size()))
    reject("crop", "shape and offsets need ", x.ndim(), " numbers for ", x.type());
  for (int64_t i = 0; i < x.ndim(); ++i) {
    const auto at = static_cast<size_t>(i);
    if ((a.offsets && (*a.offsets)[at].less(0).value_or(false)) ||
        (a.shape && (*a.shape)[at].less(-1).value_or(false)))
      reject("crop", "shape and offsets must not be negative (but -1 for the rest)");
    const Dim start = a.offsets ? (*a.offsets)[at] : Dim(0);
    const bool rest = !a.shape || (*a.shape)[at].constant() == -1;
    axes.push_back(i);
    starts.push_back(start);
    ends.push_back(rest ? x.dim(i) : start + (*a.shape)[at]);
    if (x.dim(i).less(ends.back()).value_or(false))
      reject("crop", "axis ", i, " of ", x.type(), " ends before ", ends.back());
  }
  return {ops::strided_slice(x, axes, starts, ends, Axes(axes.size(), 1))};
}

Tensors decompose_block_diag(CallContext& c) {
  Tensors blocks;
  Dim columns = 0;
  for (const Tensor& x : c.list(0)) {
    if (x.ndim() > 2) reject("block_diag", "inputs must be matrices, not ", x.type());
    blocks.push_back(with_rank(x, 2));
    columns = columns + blocks.back().dim(1);
  }
  Tensors rows;
  Dim before = 0;
  for (const Tensor& block : blocks) {
    const Dim behind = columns - before - block.dim(1);
    rows.push_back(ops::pad(block, {0, 0, before.value(), behind.value()}));
    before = before + block.dim(1);
  }
  return {ops::concat(rows, 0)};
}

void infer_unfold_axis(InferContext& c) {
  const auto a = c.attrs_as<UnfoldAxisAttrs>();
  c.check(c.rank(0) > 0, "x must have at least one dimension");
  const auto axis = static_cast<size_t>(c.axis(a.axis, c.rank(0)));
  c.check(a.size >= 0 && a.step > 0, "size must not be negative and step positive");
  Shape out = c.shape(0);
  c.check(!out[axis].less(a.size).value_or(false), "size ", a.size, " is larger than axis ", a.axis,
          " of ", c.type(0));
  out[axis] = floor_divide(out[axis] - a.size, a.step) + 1;
  out.push_back(a.size);
  c.result(c.dtype(0), out);
}

Layout view_unfold_axis(const Layout& x, const Attrs& attrs, const Dims& shape) {
  const UnfoldAxisAttrs a(attrs);
  const auto axis =
      static_cast<size_t>(a.axis < 0 ? a.axis + static_cast<int64_t>(x.shape.size()) : a.axis);
  Layout out = x;
  out.shape = shape;
  out.strides.push_back(x.strides[axis]);
  // With one window the step moves nothing, however long it is.
  if (shape[axis] > 1) out.strides[axis] *= a.step;
  return out;
}

// Each index of the axis gets the sum over the windows that contain it.
Tensors vjp_unfold_axis(VjpContext& c) {
  const auto a = c.attrs_as<UnfoldAxisAttrs>();
  const Tensor &x = c.operand(0), &g = c.cotangent();
  const int64_t axis = a.axis < 0 ? a.axis + x.ndim() : a.axis;
  const bool plain = x.dtype() == DType::kF32 || x.dtype() == DType::kF64 || is_complex(x.dtype());
  if (plain && axis == x.ndim() - 1 && a.step > 0 && g.dim(axis).less(1) == false)
    return {ops::overlap_frames(g, a.step, x.dim(axis))};
  const int64_t windows = g.dim(axis).value();
  std::vector<int64_t> places;
  for (int64_t w = 0; w < windows; ++w)
    for (int64_t k = 0; k < a.size; ++k) places.push_back(w * a.step + k);
  Axes perm;
  for (int64_t i = 0; i < x.ndim(); ++i) {
    perm.push_back(i);
    if (i == axis) perm.push_back(x.ndim());
  }
  Shape shape = x.shape();
  shape[static_cast<size_t>(axis)] = windows * a.size;
  const Tensor lines = ops::reshape(ops::transpose(g, perm), shape);
  return {ops::index_add(zeros_like(x),
                         Tensor(Array::from(places, {static_cast<int64_t>(places.size())})), axis,
                         lines)};
}

Tensors decompose_narrow(CallContext& c) {
  const auto a = c.attrs_as<NarrowAttrs>();
  const Tensor& x = c.operand(0);
  if (a.dim < -x.ndim() || a.dim >= x.ndim())
    reject("narrow", "dim ", a.dim, " is out of range for ", x.type());
  const Dim size = x.dim(a.dim);
  const Dim start = a.start < 0 ? size + a.start : Dim(a.start);
  if (a.length < 0 || start.less(0).value_or(false) || size.less(start + a.length).value_or(false))
    reject("narrow", a.length, " elements from ", a.start, " do not lie in an axis of ", size);
  return {slice_axis(x, a.dim < 0 ? a.dim + x.ndim() : a.dim, start, start + a.length)};
}

Tensors decompose_ravel(CallContext& c) { return {ops::reshape(c.operand(0), Shape{-1})}; }

Tensors decompose_cartesian_prod(CallContext& c) {
  const Tensors vectors = c.list(0);
  if (vectors.empty()) reject("cartesian_prod", "x is empty");
  for (const Tensor& x : vectors) check_vector("cartesian_prod", x);
  if (vectors.size() == 1) return {ops::assign(vectors[0])};
  Tensors columns;
  for (const Tensor& x : ops::meshgrid(vectors)) columns.push_back(ops::reshape(x, Shape{-1}));
  return {ops::stack(columns, 1)};
}

Tensors decompose_combinations(CallContext& c) {
  const auto a = c.attrs_as<CombinationsAttrs>();
  const Tensor& x = c.operand(0);
  check_vector("combinations", x);
  if (a.r < 0) reject("combinations", "r must not be negative, not ", a.r);
  const int64_t n = x.dim(0).value(), step = a.with_replacement ? 0 : 1;
  if (a.r == 0) return {full_of({Dim(0)}, 0, x.dtype())};
  if (!a.with_replacement && a.r > n) return {full_of({Dim(0), Dim(a.r)}, 0, x.dtype())};
  constexpr int64_t kMaxLength = 1024;
  if (a.r > kMaxLength) reject("combinations", "r must be at most ", kMaxLength, ", not ", a.r);
  std::vector<int64_t> rows;
  std::vector<int64_t> chosen;
  const auto choose = [&](auto&& self, int64_t first) -> void {
    if (static_cast<int64_t>(chosen.size()) == a.r) {
      rows.insert(rows.end(), chosen.begin(), chosen.end());
      if (rows.size() > size_t{1} << 26) reject("combinations", "more than 2^26 elements");
      return;
    }
    for (int64_t i = first; i < n; ++i) {
      chosen.push_back(i);
      self(self, i + step);
      chosen.pop_back();
    }
  };
  choose(choose, 0);
  const auto count = static_cast<int64_t>(rows.size()) / a.r;
  if (count == 0) return {full_of({Dim(0), Dim(a.r)}, 0, x.dtype())};
  const Tensor picked = ops::index_select(x, Tensor(Array::from(rows, {count * a.r})));
  return {ops::reshape(picked, {Dim(count), Dim(a.r)})};
}

}  // namespace paddle::rules
