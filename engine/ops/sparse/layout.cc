#include "ops/sparse/layout.h"

#include "ops/generated/creation.h"
#include "ops/generated/graph.h"
#include "ops/generated/indexing.h"
#include "ops/generated/math.h"
#include "ops/generated/reduce.h"
#include "ops/generated/sequence.h"
#include "ops/generated/shape.h"
#include "ops/generated/sorting.h"
#include "ops/generated/sparse.h"

namespace paddle::rules {

Tensor int64_of(std::string_view op, const char* name, const Tensor& x, int64_t rank) {
  if (x.ndim() != rank) reject(op, name, " must have ", rank, " dimensions, not ", x.type());
  return ops::cast(x, DType::kI64);
}

Dim product_of(const Shape& shape) {
  Dim out(1);
  for (const Dim& size : shape) out = out * size;
  return out;
}

Tensor along_first(const Tensor& v, int64_t rank) {
  Shape shape(static_cast<size_t>(rank), Dim(1));
  shape[0] = v.dim(0);
  return ops::reshape(v, shape);
}

Tensor shape_tensor(const Shape& shape) {
  if (is_constant(shape)) {
    std::vector<int64_t> sizes;
    for (const Dim& size : shape) sizes.push_back(size.value());
    return Tensor(Array::from(sizes, {static_cast<int64_t>(sizes.size())}));
  }
  Tensors sizes;
  for (const Dim& size : shape) sizes.push_back(dim_value(size, DType::kI64));
  return ops::stack(sizes, 0);
}

Tensor unravel(const Tensor& linear, const Shape& shape) {
  Tensors rows(shape.size());
  Tensor rest = linear;
  for (size_t axis = shape.size(); axis-- > 0;) {
    if (axis == 0) {
      rows[axis] = rest;
      break;
    }
    // A size of 0 has no elements, and nothing is divided by it.
    const Tensor size = ops::maximum(dim_value(shape[axis], DType::kI64), integer(1));
    rows[axis] = ops::remainder(rest, size);
    rest = ops::floor_divide(rest, size);
  }
  return ops::stack(rows, 0);
}

Coo::Coo(std::string_view name, const Tensor& given, const Tensor& elements, const Shape& sizes)
    : op(name), indices(int64_of(name, "indices", given, 2)), values(elements), shape(sizes) {
  const auto axes = indices.dim(0).constant();
  if (!axes || *axes < 1)
    reject(op, "indices must be [sparse axes, n] with at least one axis, not ", given.type());
  if (values.ndim() < 1) reject(op, "values must have at least one dimension");
  if (indices.dim(1).equals(values.dim(0)) == false)
    reject(op, "there are ", indices.dim(1), " indices and ", values.dim(0), " values");
  const auto rank = static_cast<int64_t>(shape.size());
  if (rank != *axes + values.ndim() - 1)
    reject(op, "shape ", text(shape), " must have ", *axes + values.ndim() - 1,
           " axes for indices ", given.type(), " and values ", values.type());
  for (const Dim& size : shape)
    if (size.less(Dim(0)) == true) reject(op, "negative size in shape ", text(shape));
  for (int64_t i = *axes; i < rank; ++i)
    if (shape[static_cast<size_t>(i)].equals(values.dim(i - *axes + 1)) == false)
      reject(op, "shape ", text(shape), " does not end like values ", values.type());
}

Tensor Coo::index(int64_t axis) const {
  return ops::squeeze(slice_axis(indices, 0, axis, axis + 1), std::vector<int64_t>{0});
}

Tensor Coo::linear() const { return ops::sparse_linear_index(indices, sparse_shape()); }

Tensor Coo::dense() const {
  const Tensor rows =
      ops::segment_reduce(values, linear(), product_of(sparse_shape()), std::string("sum"));
  return ops::reshape(rows, shape);
}

Coo::Distinct Coo::distinct() const {
  const Tensors parts = ops::unique(linear(), false, true);
  return {parts[0], parts[1]};
}

Coo Coo::coalesced() const {
  const Distinct d = distinct();
  Coo out = *this;
  out.indices = unravel(d.linear, sparse_shape());
  out.values = ops::segment_reduce(values, d.inverse, d.linear.dim(0), std::string("sum"));
  return out;
}

Csr::Csr(std::string_view op, const Tensor& starts, const Tensor& columns, const Tensor& elements,
         const Shape& sizes)
    : crows(int64_of(op, "crows", starts, 1)),
      cols(int64_of(op, "cols", columns, 1)),
      values(elements),
      shape(sizes) {
  if (shape.size() != 2 && shape.size() != 3)
    reject(op, "shape must be [rows, columns] or [batch, rows, columns], not ", text(shape));
  if (values.ndim() != 1) reject(op, "values must have one dimension, not ", values.type());
  if (cols.dim(0).equals(values.dim(0)) == false)
    reject(op, "there are ", cols.dim(0), " cols and ", values.dim(0), " values");
  for (const Dim& size : shape)
    if (size.less(Dim(0)) == true) reject(op, "negative size in shape ", text(shape));
  const Dim batch = shape.size() == 3 ? shape[0] : Dim(1);
  const Dim expected = batch * (shape[shape.size() - 2] + 1);
  if (crows.dim(0).equals(expected) == false)
    reject(op, "crows must have ", expected, " elements for shape ", text(shape), ", not ",
           crows.dim(0));
}

Tensor Csr::rows() const {
  const Dim& rows = shape[shape.size() - 2];
  const Tensor table = ops::reshape(crows, Shape{Dim(-1), rows + 1});
  const Tensor lengths = slice_axis(table, 1, 1, rows + 1) - slice_axis(table, 1, 0, rows);
  return ops::sequence_rows(flat(lengths), values.dim(0));
}

Coo Csr::coo(std::string_view op) const {
  const Tensor row = rows();
  if (shape.size() == 2) return Coo(op, ops::stack({row, cols}, 0), values, shape);
  const Tensor size = ops::maximum(dim_value(shape[1], DType::kI64), integer(1));
  const Tensor batch = ops::floor_divide(row, size);
  return Coo(op, ops::stack({batch, ops::remainder(row, size), cols}, 0), values, shape);
}

Csr csr_of(const Coo& given) {
  const auto rank = given.shape.size();
  if ((rank != 2 && rank != 3) || given.sparse_rank() != static_cast<int64_t>(rank))
    reject(given.op, "a CSR tensor needs 2 or 3 sparse axes and no dense one, found shape ",
           text(given.shape), " with indices ", given.indices.type());
  const Coo x = given.coalesced();
  const Dim &rows = x.shape[rank - 2], batch = rank == 3 ? x.shape[0] : Dim(1);
  Tensor row = x.index(static_cast<int64_t>(rank) - 2);
  if (rank == 3) row = x.index(0) * dim_value(rows, DType::kI64) + row;
  // Where each row begins in the sorted rows of all batches.
  const Tensor begins = ops::searchsorted(row, range_of(batch * rows + 1, DType::kI64));
  Tensor crows = begins;
  if (rank == 3) {
    const Tensor lengths =
        slice_axis(begins, 0, 1, batch * rows + 1) - slice_axis(begins, 0, 0, batch * rows);
    const Tensor ends = ops::cumsum(ops::reshape(lengths, Shape{batch, rows}), int64_t{1});
    crows = flat(ops::concat({full_of({batch, Dim(1)}, 0, DType::kI64), ends}, 1));
  }
  return Csr(x.op, crows, x.index(static_cast<int64_t>(rank) - 1), x.values, x.shape);
}

Tensor group_softmax(const Tensor& values, const Tensor& group, const Dim& groups) {
  const Tensor high = ops::detach(ops::segment_reduce(values, group, groups, std::string("max")));
  const Tensor e = ops::exp(values - ops::index_select(high, group, 0));
  const Tensor sums = ops::segment_reduce(e, group, groups, std::string("sum"));
  return e / ops::index_select(sums, group, 0);
}

}  // namespace paddle::rules
