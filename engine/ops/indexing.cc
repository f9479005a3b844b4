// Rules of schema/indexing.yaml.

#include <algorithm>

#include "ops/generated/attrs.h"
#include "ops/generated/rules.h"
#include "ops/operators.h"

namespace paddle::rules {
namespace {

Tensor integer(int64_t value) { return Tensor::number(value); }

/// `axis` counted from 0; throws kUsage.
int64_t axis_of(const char* op, int64_t axis, const Tensor& x) {
  const int64_t rank = x.ndim();
  if (axis < -rank || axis >= rank)
    fail(ErrorCode::kUsage, op, ": axis ", axis, " is out of range for ", x.type());
  return axis < 0 ? axis + rank : axis;
}

bool is_one(const Dim& d) { return d.is_constant() && d.value() == 1; }

/// Indices of any form as int64, those of a mask as its coordinates.
Tensor flat(const Tensor& x) { return ops::reshape(x, Shape{-1}); }

}  // namespace

// ---- along an axis
// -------------------------------------------------------------------------------

void infer_gather_along(InferContext& c) {
  c.require_integer(1);
  c.check(c.rank(0) == c.rank(1), "index is ", c.type(1), ", x is ", c.type(0),
          ": the ranks differ");
  const int64_t axis = c.axis(c.attrs_as<GatherAlongAttrs>().axis, c.rank(0));
  for (size_t i = 0; i < c.shape(0).size(); ++i)
    if (static_cast<int64_t>(i) != axis)
      c.check(!c.shape(0)[i].less(c.shape(1)[i]).value_or(false), "index ", c.type(1),
              " is longer than x ", c.type(0), " in axis ", i);
  c.result(c.dtype(0), c.shape(1));
}

Tensors vjp_gather_along(VjpContext& c) {
  const int64_t axis = c.attrs_as<GatherAlongAttrs>().axis;
  Tensors out = c.gradients();
  if (c.needs(0))
    out[0] = ops::scatter_along(zeros_like(c.operand(0)), c.operand(1), c.cotangent(), axis, "add");
  return out;
}

void infer_scatter_along(InferContext& c) {
  c.require_integer(1);
  c.check(c.rank(0) == c.rank(1) && c.rank(1) == c.rank(2), "index is ", c.type(1), ", x is ",
          c.type(0), ", values are ", c.type(2), ": the ranks differ");
  const int64_t axis = c.axis(c.attrs_as<ScatterAlongAttrs>().axis, c.rank(0));
  for (size_t i = 0; i < c.shape(0).size(); ++i) {
    c.require_equal(c.shape(1)[i], c.shape(2)[i], "index and values differ in shape");
    if (static_cast<int64_t>(i) != axis)
      c.check(!c.shape(0)[i].less(c.shape(1)[i]).value_or(false), "index ", c.type(1),
              " is longer than x ", c.type(0), " in axis ", i);
  }
  c.result(c.dtype(0), c.shape(0));
}

Tensors vjp_scatter_along(VjpContext& c) {
  const auto a = c.attrs_as<ScatterAlongAttrs>();
  const Tensor &x = c.operand(0), &index = c.operand(1), &values = c.operand(2), &g = c.cotangent();
  const Tensor none = zeros_like(values);
  const auto without = [&](const Tensor& t) {
    return ops::scatter_along(t, index, none, a.axis, "assign");
  };
  const auto at = [&](const Tensor& t) { return ops::gather_along(t, index, a.axis); };
  Tensor dx, dv;
  if (a.reduce == "assign") {
    // Of values written to one place, the last one counts.
    const Tensor order = ops::reshape(
        ops::cumsum(ops::cast(ops::assign(flat(ones_like(none))), DType::kI64), int64_t{0}),
        values.shape());
    const Tensor last =
        ops::scatter_along(ops::cast(zeros_like(x), DType::kI64), index, order, a.axis, "assign");
    dx = without(g);
    dv = at(g) * mask_of(ops::equal(at(last), order), g);
  } else if (a.reduce == "add") {
    dx = a.include_self ? g : without(g);
    dv = at(g);
  } else if (a.reduce == "mul") {
    // The product of the others; factors of 0 have no gradient here.
    const auto ratio = [&](const Tensor& t, const Tensor& factor) {
      const Tensor zero = ops::equal(factor, Tensor::number(0.0));
      return ops::where(zero, Tensor::number(0.0),
                        t / ops::where(zero, Tensor::number(1.0), factor));
    };
    const Tensor scaled = g * c.result(0);
    const Tensor touched = without(ones_like(x));
    dx = ops::where(ops::equal(touched, Tensor::number(1.0)), g,
                    a.include_self ? ratio(scaled, x) : zeros_like(g));
    dv = ratio(at(scaled), values);
  } else if (a.reduce == "mean") {
    const Tensor base = a.include_self ? ones_like(x) : without(ones_like(x));
    const Tensor count = ops::scatter_along(base, index, ones_like(none), a.axis, "add");
    const Tensor share = g / count;
    dx = a.include_self ? share : without(g);
    dv = at(share);
  } else {
    const Tensor hit_x = mask_of(ops::equal(x, c.result(0)), g);
    const Tensor hit_v = mask_of(ops::equal(values, at(c.result(0))), g);
    const Tensor base = a.include_self ? hit_x : without(ones_like(x));
    const Tensor share = g / ops::scatter_along(base, index, hit_v, a.axis, "add");
    dx = share * base;
    dv = at(share) * hit_v;
  }
  Tensors out = c.gradients();
  if (c.needs(0)) out[0] = dx;
  if (c.needs(2)) out[2] = dv;
  return out;
}

namespace {

/// Both expanded to each other's sizes along all axes but one, where they have size 1.
std::pair<Tensor, Tensor> broadcast_but(const Tensor& x, const Tensor& index, int64_t axis) {
  Shape to_x = x.shape(), to_index = index.shape();
  if (to_x.size() != to_index.size()) return {x, index};
  for (size_t i = 0; i < to_x.size(); ++i) {
    if (static_cast<int64_t>(i) == axis) continue;
    if (!is_one(to_x[i]) && !is_one(to_index[i]) && to_x[i].equals(to_index[i]) == false)
      fail(ErrorCode::kUsage, "take_along_axis: indices ", index.type(),
           " do not broadcast to arr ", x.type());
    if (is_one(to_x[i]))
      to_x[i] = to_index[i];
    else if (is_one(to_index[i]))
      to_index[i] = to_x[i];
  }
  return {same_shape(to_x, x.shape()) ? x : ops::expand(x, to_x),
          same_shape(to_index, index.shape()) ? index : ops::expand(index, to_index)};
}

}  // namespace

Tensors decompose_take_along_axis(CallContext& c) {
  const auto a = c.attrs_as<TakeAlongAxisAttrs>();
  const int64_t axis = axis_of("take_along_axis", a.axis, c.operand(0));
  Tensor x = c.operand(0), index = c.operand(1);
  if (a.broadcast) std::tie(x, index) = broadcast_but(x, index, axis);
  return {ops::gather_along(x, index, axis)};
}

Tensors decompose_put_along_axis(CallContext& c) {
  const auto a = c.attrs_as<PutAlongAxisAttrs>();
  Tensor x = c.operand(0), index = c.operand(1), values = c.operand(2);
  const int64_t axis = axis_of("put_along_axis", a.axis, x);
  if (a.broadcast) {
    Shape shape = x.shape();
    if (index.ndim() != x.ndim())
      fail(ErrorCode::kUsage, "put_along_axis: indices are ", index.type(), ", arr is ", x.type());
    shape[static_cast<size_t>(axis)] = index.dim(axis);
    if (!same_shape(shape, index.shape())) index = ops::expand(index, shape);
  }
  if (!a.broadcast && values.ndim() > 0 && values.ndim() != index.ndim())
    fail(ErrorCode::kUsage, "put_along_axis: values are ", values.type(), ", indices ",
         index.type());
  if (!same_shape(values.shape(), index.shape())) {
    // Values that are larger than the indices give their first part.
    bool larger = values.ndim() == index.ndim();
    for (size_t i = 0; larger && i < values.shape().size(); ++i)
      larger = !values.shape()[i].less(index.shape()[i]).value_or(true);
    if (larger && !a.broadcast) {
      std::vector<int64_t> axes, strides;
      Shape starts;
      for (int64_t i = 0; i < values.ndim(); ++i) {
        axes.push_back(i);
        strides.push_back(1);
        starts.push_back(0);
      }
      values = ops::strided_slice(values, axes, starts, index.shape(), strides);
    } else {
      values = ops::expand(values, index.shape());
    }
  }
  const std::string reduce = a.reduce == "multiply" ? "mul" : a.reduce;
  const std::vector<std::string> words = {"assign", "add", "mul", "mean", "amin", "amax"};
  if (std::find(words.begin(), words.end(), reduce) == words.end())
    fail(ErrorCode::kUsage, "put_along_axis: reduce '", reduce, "' is none of ", join(words, ", "));
  return {ops::scatter_along(x, index, values, axis, reduce, a.include_self)};
}

// ---- slices by index
// -----------------------------------------------------------------------------

void infer_index_select(InferContext& c) {
  c.require_integer(1);
  c.check(c.rank(1) == 1, "index must be 1-D, not ", c.type(1));
  c.check(c.rank(0) > 0, "x must have at least one dimension");
  Shape out = c.shape(0);
  out[static_cast<size_t>(c.axis(c.attrs_as<IndexSelectAttrs>().axis, c.rank(0)))] = c.shape(1)[0];
  c.result(c.dtype(0), out);
}

Tensors vjp_index_select(VjpContext& c) {
  Tensors out = c.gradients();
  if (c.needs(0))
    out[0] = ops::index_add(zeros_like(c.operand(0)), c.operand(1),
                            c.attrs_as<IndexSelectAttrs>().axis, c.cotangent());
  return out;
}

void infer_index_add(InferContext& c) {
  c.require_integer(1);
  c.check(c.rank(1) == 1, "index must be 1-D, not ", c.type(1));
  c.check(c.rank(0) == c.rank(2) && c.rank(0) > 0, "value is ", c.type(2), ", x is ", c.type(0));
  const int64_t axis = c.axis(c.attrs_as<IndexAddAttrs>().axis, c.rank(0));
  for (size_t i = 0; i < c.shape(0).size(); ++i)
    c.require_equal(c.shape(2)[i], static_cast<int64_t>(i) == axis ? c.shape(1)[0] : c.shape(0)[i],
                    str("value is ", c.type(2), ", x is ", c.type(0), ", index is ", c.type(1)));
  c.result(c.dtype(0), c.shape(0));
}

Tensors vjp_index_add(VjpContext& c) {
  const auto a = c.attrs_as<IndexAddAttrs>();
  Tensors out = c.gradients();
  if (c.needs(0)) out[0] = c.cotangent();
  if (c.needs(2)) {
    const Tensor part = ops::index_select(c.cotangent(), c.operand(1), a.axis);
    out[2] = a.alpha == 1 ? part : part * a.alpha;
  }
  return out;
}

Tensors decompose_gather(CallContext& c) {
  const Tensor &x = c.operand(0), &index = c.operand(1);
  const int64_t axis = axis_of("gather", c.attrs_as<GatherAttrs>().axis.value_or(0), x);
  if (index.ndim() == 0)
    return {ops::squeeze(ops::index_select(x, ops::reshape(index, Shape{1}), axis),
                         std::vector<int64_t>{axis})};
  if (index.ndim() == 2 && is_one(index.dim(1))) return {ops::index_select(x, flat(index), axis)};
  return {ops::index_select(x, index, axis)};
}

Tensors decompose_index_sample(CallContext& c) {
  if (c.operand(0).ndim() != 2 || c.operand(1).ndim() != 2)
    fail(ErrorCode::kUsage, "index_sample: x and index must be 2-D, not ", c.operand(0).type(),
         " and ", c.operand(1).type());
  if (c.operand(0).dim(0).equals(c.operand(1).dim(0)) == false)
    fail(ErrorCode::kUsage, "index_sample: x ", c.operand(0).type(), " and index ",
         c.operand(1).type(), " differ in rows");
  return {ops::gather_along(c.operand(0), c.operand(1), 1)};
}

Tensors decompose_index_fill(CallContext& c) {
  const auto a = c.attrs_as<IndexFillAttrs>();
  const Tensor &x = c.operand(0), &index = c.operand(1);
  const int64_t axis = axis_of("index_fill", a.axis, x);
  const Tensor hits =
      ops::index_add(full_of({x.dim(axis)}, 0, DType::kI32), flat(index), 0,
                     ops::cast(ops::greater_equal(flat(index), integer(INT64_MIN)), DType::kI32));
  Shape along(x.shape().size(), Dim(1));
  along[static_cast<size_t>(axis)] = x.dim(axis);
  const Tensor mask = ops::reshape(ops::greater_than(hits, integer(0)), along);
  return {ops::where(mask, ops::full(Shape(), a.value, x.dtype()), x)};
}

Tensors decompose_take(CallContext& c) {
  const auto a = c.attrs_as<TakeAttrs>();
  const Tensor x = flat(c.operand(0)), &index = c.operand(1);
  Tensor at = flat(index);
  const Tensor size = dim_value(x.dim(0), at.dtype());
  if (a.mode == "wrap") at = ops::remainder(at, size);
  if (a.mode == "clip") at = ops::minimum(ops::maximum(at, integer(0)), size - 1.0);
  return {ops::reshape(ops::index_select(x, ops::cast(at, index.dtype()), 0), index.shape())};
}

// ---- by coordinates
// ------------------------------------------------------------------------------

void infer_gather_nd(InferContext& c) {
  c.require_integer(1);
  c.check(c.rank(1) > 0, "index must have at least one dimension");
  const int64_t depth = c.shape(1).back().value();
  c.check(depth <= c.rank(0), "index ", c.type(1), " has ", depth, " coordinates, x is ",
          c.type(0));
  Shape out(c.shape(1).begin(), c.shape(1).end() - 1);
  out.insert(out.end(), c.shape(0).begin() + depth, c.shape(0).end());
  c.result(c.dtype(0), out);
}

Tensors vjp_gather_nd(VjpContext& c) {
  Tensors out = c.gradients();
  if (c.needs(0))
    out[0] = ops::scatter_nd_add(zeros_like(c.operand(0)), c.operand(1), c.cotangent());
  return out;
}

void infer_scatter_nd_add(InferContext& c) {
  c.require_integer(1);
  c.check(c.rank(1) > 0, "index must have at least one dimension");
  const int64_t depth = c.shape(1).back().value();
  c.check(depth <= c.rank(0), "index ", c.type(1), " has ", depth, " coordinates, x is ",
          c.type(0));
  Shape expected(c.shape(1).begin(), c.shape(1).end() - 1);
  expected.insert(expected.end(), c.shape(0).begin() + depth, c.shape(0).end());
  c.check(expected.size() == c.shape(2).size(), "updates are ", c.type(2), ", expected the shape ",
          text(expected));
  for (size_t i = 0; i < expected.size(); ++i)
    c.require_equal(c.shape(2)[i], expected[i],
                    str("updates are ", c.type(2), ", expected the shape ", text(expected)));
  c.result(c.dtype(0), c.shape(0));
}

Tensors vjp_scatter_nd_add(VjpContext& c) {
  Tensors out = c.gradients();
  if (c.needs(0)) out[0] = c.cotangent();
  if (c.needs(2)) out[2] = ops::gather_nd(c.cotangent(), c.operand(1));
  return out;
}

Tensors vjp_scatter_nd_put(VjpContext& c) {
  Tensors out = c.gradients();
  const Tensor &g = c.cotangent(), &updates = c.operand(2);
  if (c.needs(0)) out[0] = ops::scatter_nd_put(g, c.operand(1), zeros_like(updates));
  if (c.needs(2)) {
    // Of updates to one place, the last one counts.
    const Tensor order = ops::reshape(
        ops::cumsum(full_of({element_count(std::span<const Dim>(updates.shape()))}, 1, DType::kI64),
                    int64_t{0}),
        updates.shape());
    const Tensor last =
        ops::scatter_nd_put(full_of(g.shape(), 0, DType::kI64), c.operand(1), order);
    out[2] = ops::gather_nd(g, c.operand(1)) *
             mask_of(ops::equal(ops::gather_nd(last, c.operand(1)), order), g);
  }
  return out;
}

Tensors decompose_scatter_nd(CallContext& c) {
  const auto a = c.attrs_as<ScatterNdAttrs>();
  return {
      ops::scatter_nd_add(full_of(a.shape, 0, c.operand(1).dtype()), c.operand(0), c.operand(1))};
}

Tensors decompose_scatter(CallContext& c) {
  const auto a = c.attrs_as<ScatterAttrs>();
  const Tensor& x = c.operand(0);
  Tensor index = c.operand(1), updates = c.operand(2);
  const bool column = index.ndim() == 2 && index.dim(1).equals(1) == true;
  if (index.ndim() > 1 && !column)
    fail(ErrorCode::kUsage, "scatter: index must have one dimension, not ", index.type());
  if (index.ndim() == 0) {
    index = ops::reshape(index, Shape{1});
    if (updates.ndim() + 1 == x.ndim()) updates = ops::unsqueeze(updates, {0});
  }
  const Tensor rows = ops::reshape(index, Shape{-1, 1});
  if (a.overwrite) return {ops::scatter_nd_put(x, rows, updates)};
  const Tensor cleared = ops::scatter_nd_put(x, rows, zeros_like(updates));
  return {ops::scatter_nd_add(cleared, rows, updates)};
}

Tensors decompose_index_put(CallContext& c) {
  const auto a = c.attrs_as<IndexPutAttrs>();
  const Tensor& x = c.operand(0);
  Tensors indices;
  for (const Tensor& index : c.list(1)) {
    if (!is_bool(index.dtype())) {
      indices.push_back(index);
      continue;
    }
    for (const Tensor& column : ops::nonzero(index, true)) indices.push_back(column);
  }
  if (indices.empty()) fail(ErrorCode::kUsage, "index_put: no indices are given");
  if (static_cast<int64_t>(indices.size()) > x.ndim())
    fail(ErrorCode::kUsage, "index_put: ", indices.size(), " indices for ", x.type());
  Shape shape;
  for (const Tensor& index : indices) {
    const Shape& next = index.shape();
    const size_t rank = std::max(shape.size(), next.size());
    Shape joined(rank, Dim(1));
    for (size_t i = 0; i < rank; ++i) {
      const Dim left = i + shape.size() < rank ? Dim(1) : shape[i + shape.size() - rank];
      const Dim right = i + next.size() < rank ? Dim(1) : next[i + next.size() - rank];
      joined[i] = is_one(left) ? right : left;
    }
    shape = joined;
  }
  for (Tensor& index : indices) index = ops::cast(ops::expand(index, shape), DType::kI64);
  const Tensor coordinates = ops::stack(indices, -1);
  Shape full = shape;
  full.insert(full.end(), x.shape().begin() + static_cast<ptrdiff_t>(indices.size()),
              x.shape().end());
  const Tensor values = ops::expand(c.operand(c.op().operands().size() - 1), full);
  return {a.accumulate ? ops::scatter_nd_add(x, coordinates, values)
                       : ops::scatter_nd_put(x, coordinates, values)};
}

// ---- by mask
// -------------------------------------------------------------------------------------

void infer_nonzero_rows(InferContext& c) {
  c.result(DType::kI64, {c.run_time_dim(), Dim(c.rank(0))});
}

void infer_nonzero(InferContext& c) {
  const Dim count = c.run_time_dim();
  if (!c.attrs_as<NonzeroAttrs>().as_tuple) {
    c.result(DType::kI64, {count, Dim(c.rank(0))});
    return;
  }
  for (int64_t i = 0; i < c.rank(0); ++i) c.result(DType::kI64, {count});
}

Tensors decompose_nonzero(CallContext& c) {
  const Tensor rows = ops::nonzero_rows(c.operand(0));
  if (!c.attrs_as<NonzeroAttrs>().as_tuple) return {rows};
  Tensors columns;
  for (int64_t i = 0; i < c.operand(0).ndim(); ++i)
    columns.push_back(ops::squeeze(ops::strided_slice(rows, {1}, {Dim(i)}, {Dim(i + 1)}, {1}),
                                   std::vector<int64_t>{1}));
  return columns;
}

void infer_masked_select(InferContext& c) {
  c.check(is_bool(c.dtype(1)), "mask must be bool, not ", text(c.dtype(1)));
  c.broadcast(c.shape(0), c.shape(1));
  c.result(c.dtype(0), {c.run_time_dim()});
}

Tensors vjp_masked_select(VjpContext& c) {
  const Tensor& x = c.operand(0);
  Tensors out = c.gradients();
  if (!c.needs(0)) return out;
  // The gradient at each true place is the one with its number.
  const Tensor mask =
      ops::add(ops::cast(c.operand(1), DType::kI64), full_of(x.shape(), 0, DType::kI64));
  const Tensor taken = ops::concat({c.cotangent(), full_of({Dim(1)}, 0, c.cotangent().dtype())}, 0);
  const Tensor place = ops::cumsum(flat(mask), int64_t{0}) - integer(1);
  const Tensor values = ops::index_select(taken, ops::maximum(place, integer(0)), 0);
  const Tensor kept = values * ops::cast(flat(mask), values.dtype());
  out[0] = sum_to(ops::reshape(kept, mask.shape()), x.shape());
  return out;
}

Tensors decompose_masked_fill(CallContext& c) {
  const Tensor& x = c.operand(0);
  return {ops::where(c.operand(1), ops::cast(c.operand(2), x.dtype()), x)};
}

Tensors decompose_masked_scatter(CallContext& c) {
  const Tensor &x = c.operand(0), &value = c.operand(2);
  const Tensor mask = ops::expand(c.operand(1), x.shape());
  const Tensor place = ops::cumsum(ops::cast(flat(mask), DType::kI64), int64_t{0}) - integer(1);
  const Tensor taken = ops::index_select(flat(value), ops::maximum(place, integer(0)), 0);
  return {ops::where(mask, ops::reshape(taken, x.shape()), x)};
}

// ---- slices
// --------------------------------------------------------------------------------------

Tensors decompose_select_scatter(CallContext& c) {
  const auto a = c.attrs_as<SelectScatterAttrs>();
  const Tensor& x = c.operand(0);
  const int64_t axis = axis_of("select_scatter", a.axis, x);
  Dim start = a.index;
  if (a.index < 0) start = x.dim(axis) + a.index;
  Shape slice = x.shape();
  slice.erase(slice.begin() + axis);
  if (c.operand(1).ndim() != x.ndim() - 1)
    fail(ErrorCode::kUsage, "select_scatter: values are ", c.operand(1).type(), ", the slice is ",
         text(slice));
  return {ops::strided_slice_scatter(x, ops::unsqueeze(c.operand(1), {axis}), {axis}, {start},
                                     {start + 1}, {1})};
}

Tensors decompose_slice_scatter(CallContext& c) {
  const auto a = c.attrs_as<SliceScatterAttrs>();
  return {
      ops::strided_slice_scatter(c.operand(0), c.operand(1), a.axes, a.starts, a.ends, a.strides)};
}

}  // namespace paddle::rules
