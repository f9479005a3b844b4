// Rules of indexing.yaml: by coordinates and by mask.

#include <algorithm>

#include "ops/core/compose.h"
#include "ops/generated/indexing.h"
#include "ops/generated/indexing_rules.h"
#include "ops/generated/math.h"
#include "ops/generated/reduce.h"
#include "ops/generated/shape.h"

namespace paddle::rules {

// --- by coordinates ---

void infer_gather_nd(InferContext& c) {
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
    // Of updates with the same index, the last one is written.
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

// --- by mask ---

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
  c.broadcast(c.shape(0), c.shape(1));
  c.result(c.dtype(0), {c.run_time_dim()});
}

Tensors vjp_masked_select(VjpContext& c) {
  const Tensor& x = c.operand(0);
  Tensors out = c.gradients();
  if (!c.needs(0)) return out;
  // The gradient at each true element is that of its position among the selected ones.
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

}  // namespace paddle::rules
