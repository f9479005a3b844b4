// Rules of products.yaml.

#include <cmath>

#include "ops/generated/graph.h"
#include "ops/generated/indexing.h"
#include "ops/generated/math.h"
#include "ops/generated/reduce.h"
#include "ops/generated/sequence.h"
#include "ops/generated/shape.h"
#include "ops/generated/sorting.h"
#include "ops/generated/sparse.h"
#include "ops/generated/sparse_rules.h"
#include "ops/sparse/layout.h"

namespace paddle::rules {
namespace {

const std::string kSum = "sum";

/// The product of a sparse matrix or batch of matrices with dense ones or a vector.
Tensor product(const Coo& x, const Tensor& y) {
  const auto rank = static_cast<int64_t>(x.shape.size());
  if (rank < 2 || x.sparse_rank() != rank)
    reject(x.op, "x must be a matrix or a batch of matrices without dense axes, not of shape ",
           text(x.shape));
  const bool vector = y.ndim() == 1;
  if (!vector && y.ndim() != rank)
    reject(x.op, "y must have ", rank, " dimensions or 1, not ", y.type());
  const Dim& inner = x.shape.back();
  if (y.dim(vector ? 0 : -2).equals(inner) == false)
    reject(x.op, "inner dimensions differ: x is ", text(x.shape), ", y is ", y.type());
  const Shape batch(x.shape.begin(), x.shape.end() - 2), rows(x.shape.begin(), x.shape.end() - 1);
  for (size_t i = 0; !vector && i < batch.size(); ++i)
    if (y.dim(static_cast<int64_t>(i)).equals(batch[i]) == false)
      reject(x.op, "batches differ: x is ", text(x.shape), ", y is ", y.type());
  // Position of each element's row in the result, and of its column in y.
  const Tensor row = ops::sparse_linear_index(slice_axis(x.indices, 0, 0, rank - 1), rows);
  Tensor column = x.index(rank - 1);
  Shape y_rows = vector ? Shape{inner, Dim(1)} : Shape{product_of(batch) * inner, y.dim(-1)};
  if (!vector && rank > 2) {
    Tensors places;
    for (int64_t i = 0; i < rank; ++i)
      if (i != rank - 2) places.push_back(x.index(i));
    Shape sizes = batch;
    sizes.push_back(inner);
    column = ops::sparse_linear_index(ops::stack(places, 0), sizes);
  } else {
    column = ops::sparse_linear_index(slice_axis(x.indices, 0, rank - 1, rank), Shape{inner});
  }
  const Tensor picked = ops::index_select(ops::reshape(y, y_rows), column, 0);
  const Tensor sums =
      ops::segment_reduce(picked * along_first(x.values, 2), row, product_of(rows), kSum);
  Shape out = rows;
  if (!vector) out.push_back(y.dim(-1));
  return ops::reshape(sums, out);
}

/// Elements of x @ y, of matrices or batches of them, at the indices of a COO tensor.
Tensor sampled_product(std::string_view op, const Tensor& x, const Tensor& y,
                       const Tensor& indices) {
  const int64_t rank = x.ndim();
  if (rank < 2 || y.ndim() != rank)
    reject(op, "x and y must be matrices or batches of them, not ", x.type(), " and ", y.type());
  if (indices.dim(0).equals(Dim(rank)) == false)
    reject(op, "indices must have ", rank, " rows, not ", indices.type());
  if (x.dim(-1).equals(y.dim(-2)) == false)
    reject(op, "inner dimensions differ: x is ", x.type(), ", y is ", y.type());
  const Shape x_rows(x.shape().begin(), x.shape().end() - 1);
  Shape y_columns(y.shape().begin(), y.shape().end() - 2);
  for (size_t i = 0; i < y_columns.size(); ++i)
    if (y_columns[i].equals(x_rows[i]) == false)
      reject(op, "batches differ: x is ", x.type(), ", y is ", y.type());
  y_columns.push_back(y.dim(-1));
  const Tensor rows = ops::sparse_linear_index(slice_axis(indices, 0, 0, rank - 1), x_rows);
  Axes order, places;
  for (int64_t i = 0; i < rank - 2; ++i) {
    order.push_back(i);
    places.push_back(i);
  }
  order.insert(order.end(), {rank - 1, rank - 2});
  places.push_back(rank - 1);
  const auto count = static_cast<int64_t>(places.size());
  const Tensor columns = ops::sparse_linear_index(
      ops::index_select(indices, Tensor(Array::from(places, {count})), 0), y_columns);
  const auto as_rows = [](const Tensor& t, const Shape& leading) {
    return ops::reshape(t, Shape{product_of(leading), t.dim(-1)});
  };
  const Tensor a = ops::index_select(as_rows(x, x_rows), rows, 0);
  const Tensor b = ops::index_select(as_rows(ops::transpose(y, order), y_columns), columns, 0);
  return ops::sum(a * b, Axes{1});
}

Tensor scaled_sum(std::string_view op, const Tensor& input, const Tensor& product, double beta,
                  double alpha) {
  const Tensor out = beta * input + alpha * product;
  if (!same_shape(out.shape(), product.shape()))
    reject(op, "input ", input.type(), " does not broadcast to the product ", product.type());
  return out;
}

}  // namespace

Tensors decompose_sparse_matmul(CallContext& c) {
  const Coo x(c.op().name(), c.operand(0), c.operand(1), c.attrs_as<SparseMatmulAttrs>().shape);
  return {product(x, c.operand(2))};
}

Tensors decompose_sparse_csr_matmul(CallContext& c) {
  const std::string_view op = c.op().name();
  const Csr x(op, c.operand(0), c.operand(1), c.operand(2),
              c.attrs_as<SparseCsrMatmulAttrs>().shape);
  return {product(x.coo(op), c.operand(3))};
}

// Each element of x meets the row of y at its column.
Tensors decompose_sparse_matmul_sparse(CallContext& c) {
  const auto a = c.attrs_as<SparseMatmulSparseAttrs>();
  const std::string_view op = c.op().name();
  const Coo x(op, c.operand(0), c.operand(1), a.x_shape);
  const Coo y = Coo(op, c.operand(2), c.operand(3), a.y_shape).coalesced();
  if (a.x_shape.size() != 2 || x.sparse_rank() != 2 || a.y_shape.size() != 2 ||
      y.sparse_rank() != 2)
    reject(op, "x and y must be matrices, not of shapes ", text(a.x_shape), " and ",
           text(a.y_shape));
  if (a.x_shape[1].equals(a.y_shape[0]) == false)
    reject(op, "inner dimensions differ: x is ", text(a.x_shape), ", y is ", text(a.y_shape));
  const Tensor rows = y.index(0), column = x.index(1);
  const Tensor begin = ops::searchsorted(rows, column, false, false);
  const Tensor lengths = ops::searchsorted(rows, column, false, true) - begin;
  const Tensor from_y = ops::concat_ranges(begin, lengths);
  const Tensor from_x = ops::sequence_rows(lengths);
  const Tensor values =
      ops::index_select(x.values, from_x, 0) * ops::index_select(y.values, from_y, 0);
  const Tensor indices = ops::stack(
      {ops::index_select(x.index(0), from_x, 0), ops::index_select(y.index(1), from_y, 0)}, 0);
  const Coo out = Coo(op, indices, values, Shape{a.x_shape[0], a.y_shape[1]}).coalesced();
  return {out.indices, out.values};
}

Tensors decompose_sparse_masked_matmul(CallContext& c) {
  const Tensor indices = int64_of(c.op().name(), "indices", c.operand(2), 2);
  return {sampled_product(c.op().name(), c.operand(0), c.operand(1), indices)};
}

Tensors decompose_sparse_csr_masked_matmul(CallContext& c) {
  const std::string_view op = c.op().name();
  const Tensor &x = c.operand(0), &y = c.operand(1), &cols = c.operand(3);
  if ((x.ndim() != 2 && x.ndim() != 3) || y.ndim() != x.ndim())
    reject(op, "x and y must be matrices or batches of them, not ", x.type(), " and ", y.type());
  Shape shape(x.shape().begin(), x.shape().end() - 1);
  shape.push_back(y.dim(-1));
  const Csr mask(op, c.operand(2), cols, full_of({cols.dim(0)}, 0, x.dtype()), shape);
  return {sampled_product(op, x, y, mask.coo(op).indices)};
}

Tensors decompose_sparse_addmm(CallContext& c) {
  const auto a = c.attrs_as<SparseAddmmAttrs>();
  const Coo x(c.op().name(), c.operand(1), c.operand(2), a.shape);
  return {scaled_sum(x.op, c.operand(0), product(x, c.operand(3)), a.beta, a.alpha)};
}

Tensors decompose_sparse_csr_addmm(CallContext& c) {
  const auto a = c.attrs_as<SparseCsrAddmmAttrs>();
  const std::string_view op = c.op().name();
  const Csr x(op, c.operand(1), c.operand(2), c.operand(3), a.shape);
  return {scaled_sum(op, c.operand(0), product(x.coo(op), c.operand(4)), a.beta, a.alpha)};
}

Tensors decompose_sparse_attention(CallContext& c) {
  const std::string_view op = c.op().name();
  const Tensor &query = c.operand(0), &key = c.operand(1), &value = c.operand(2);
  for (const Tensor& t : {query, key, value})
    if (t.ndim() != 4)
      reject(op, "query, key and value must be [batch, heads, length, width], not ", t.type());
  const Dim batch = query.dim(0), heads = query.dim(1), length = query.dim(2);
  const auto by_head = [&](const Tensor& t) {
    return ops::reshape(t, Shape{batch * heads, t.dim(2), t.dim(3)});
  };
  const Shape shape = {batch * heads, length, key.dim(2)};
  const Csr mask(op, c.operand(3), c.operand(4), full_of({c.operand(4).dim(0)}, 0, query.dtype()),
                 shape);
  const Tensor indices = mask.coo(op).indices;
  const Tensor k = ops::transpose(by_head(key), Axes{0, 2, 1});
  const Tensor width = dim_value(query.dim(3), query.dtype());
  Tensor scores = sampled_product(op, by_head(query), k, indices) / ops::sqrt(width);
  const auto left_out = [&](const Tensor& keep) {
    scores = ops::where(ops::not_equal(keep, number(0.0)), scores,
                        full_of({}, -INFINITY, scores.dtype()));
  };
  const Coo pairs(op, indices, scores, shape);
  const Tensor column = pairs.index(2);
  if (c.has(5)) {
    const Tensor& keep = c.operand(5);
    if (keep.ndim() != 2) reject(op, "key_padding_mask must be [batch, length], not ", keep.type());
    const Tensor sample =
        ops::floor_divide(pairs.index(0), ops::maximum(dim_value(heads, DType::kI64), integer(1)));
    left_out(ops::index_select(
        flat(keep), ops::sparse_linear_index(ops::stack({sample, column}, 0), keep.shape()), 0));
  }
  if (c.has(6)) {
    const Tensor& keep = c.operand(6);
    if (keep.ndim() != 2) reject(op, "attn_mask must be [length, length], not ", keep.type());
    const Tensor place =
        ops::sparse_linear_index(ops::stack({pairs.index(1), column}, 0), keep.shape());
    left_out(ops::index_select(flat(keep), place, 0));
  }
  const Tensor weights = group_softmax(scores, mask.rows(), batch * heads * length);
  const Tensor out = product(Coo(op, indices, weights, shape), by_head(value));
  return {ops::reshape(out, Shape{batch, heads, length, value.dim(3)})};
}

}  // namespace paddle::rules
