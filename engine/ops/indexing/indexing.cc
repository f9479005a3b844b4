// Rules of indexing.yaml.

#include <algorithm>

#include "ops/core/compose.h"
#include "ops/generated/creation.h"
#include "ops/generated/indexing.h"
#include "ops/generated/indexing_rules.h"
#include "ops/generated/math.h"
#include "ops/generated/reduce.h"
#include "ops/generated/shape.h"

namespace paddle::rules {

void infer_gather_along(InferContext& c) {
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
    // Of values with the same index, the last one is written.
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
  const int64_t axis = axis_of("take_along_axis", a.axis, c.operand(0).ndim());
  Tensor x = c.operand(0), index = c.operand(1);
  if (a.broadcast) std::tie(x, index) = broadcast_but(x, index, axis);
  return {ops::gather_along(x, index, axis)};
}

Tensors decompose_put_along_axis(CallContext& c) {
  const auto a = c.attrs_as<PutAlongAxisAttrs>();
  Tensor x = c.operand(0), index = c.operand(1), values = c.operand(2);
  const int64_t axis = axis_of("put_along_axis", a.axis, x.ndim());
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
    // Of values larger than the indices, only the leading part is used.
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
    fail(ErrorCode::kUsage, "put_along_axis: reduce: expected one of ", join(words, ", "),
         ", found '", reduce, "'");
  return {ops::scatter_along(x, index, values, axis, reduce, a.include_self)};
}

void infer_index_select(InferContext& c) {
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
  const int64_t axis = axis_of("gather", c.attrs_as<GatherAttrs>().axis.value_or(0), x.ndim());
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
  const int64_t axis = axis_of("index_fill", a.axis, x.ndim());
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

Tensors decompose_select_scatter(CallContext& c) {
  const auto a = c.attrs_as<SelectScatterAttrs>();
  const Tensor& x = c.operand(0);
  const int64_t axis = axis_of("select_scatter", a.axis, x.ndim());
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

Tensors decompose_where_true(CallContext& c) { return ops::nonzero(c.operand(0), true); }

Tensors decompose_argwhere(CallContext& c) { return ops::nonzero(c.operand(0)); }

Tensors decompose_scatter_add(CallContext& c) {
  const int64_t dim = c.attrs_as<ScatterAddAttrs>().dim;
  return {ops::put_along_axis(c.operand(0), c.operand(1), c.operand(2), dim, "add", true, false)};
}

Tensors decompose_scatter_reduce(CallContext& c) {
  const auto a = c.attrs_as<ScatterReduceAttrs>();
  const std::string how = a.reduce == "sum" ? "add" : a.reduce == "prod" ? "mul" : a.reduce;
  return {ops::put_along_axis(c.operand(0), c.operand(1), c.operand(2), a.dim, how, a.include_self,
                              false)};
}

Tensors decompose_shard_index(CallContext& c) {
  const auto a = c.attrs_as<ShardIndexAttrs>();
  const Tensor& x = c.operand(0);
  if (a.index_num < 1 || a.nshards < 1)
    reject("shard_index", "index_num and nshards must be positive");
  if (a.shard_id < 0 || a.shard_id >= a.nshards)
    reject("shard_index", "shard_id ", a.shard_id, " must lie in [0, ", a.nshards, ")");
  const int64_t size = (a.index_num - 1) / a.nshards + 1;
  const Tensor mine = ops::equal(ops::floor_divide(x, integer(size)), integer(a.shard_id));
  return {ops::where(
      mine, ops::remainder(x, integer(size)),
      ops::cast(full_of({}, static_cast<double>(a.ignore_value), DType::kI64), x.dtype()))};
}

}  // namespace paddle::rules
