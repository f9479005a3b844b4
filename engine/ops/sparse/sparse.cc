// Rules of sparse.yaml.

#include <algorithm>

#include "ops/generated/creation.h"
#include "ops/generated/graph.h"
#include "ops/generated/indexing.h"
#include "ops/generated/linalg.h"
#include "ops/generated/math.h"
#include "ops/generated/nn.h"
#include "ops/generated/reduce.h"
#include "ops/generated/shape.h"
#include "ops/generated/sorting.h"
#include "ops/generated/sparse.h"
#include "ops/generated/sparse_rules.h"
#include "ops/sparse/layout.h"

namespace paddle::rules {
namespace {

template <class Attributes>
Coo coo_of(CallContext& c) {
  return Coo(c.op().name(), c.operand(0), c.operand(1), c.attrs_as<Attributes>().shape);
}

template <class Attributes>
Csr csr_operand(CallContext& c) {
  return Csr(c.op().name(), c.operand(0), c.operand(1), c.operand(2),
             c.attrs_as<Attributes>().shape);
}

Tensors parts_of(const Coo& x) { return {x.indices, x.values}; }
Tensors parts_of(const Csr& x) { return {x.crows, x.cols, x.values}; }

/// Coordinates [n, axes] of the elements that are not 0.
Tensor places_of(const Tensor& x) { return ops::nonzero_rows(x); }

Tensor at_indices(std::string_view op, const Tensor& x, const Tensor& indices) {
  const auto axes = indices.dim(0).constant();
  if (!axes || *axes > x.ndim())
    reject(op, "indices ", indices.type(), " have more axes than x ", x.type());
  const Shape shape(x.shape().begin(), x.shape().begin() + *axes);
  Shape rows = {product_of(shape)};
  rows.insert(rows.end(), x.shape().begin() + *axes, x.shape().end());
  return ops::index_select(ops::reshape(x, rows), ops::sparse_linear_index(indices, shape), 0);
}

enum class Combine { kAdd, kSubtract, kMultiply };

/// Both tensors on the union of their indices, combined element by element.
Coo combined(const Coo& x, const Coo& y, Combine how) {
  if (x.sparse_rank() != y.sparse_rank())
    reject(x.op, "x has ", x.sparse_rank(), " sparse axes, y ", y.sparse_rank());
  const Tensors parts = ops::unique(ops::concat({x.linear(), y.linear()}, 0), false, true);
  const Tensor &all = parts[0], &place = parts[1];
  const Dim count = all.dim(0);
  const Tensor at_x = slice_axis(place, 0, 0, x.count());
  const Tensor at_y = slice_axis(place, 0, x.count(), x.count() + y.count());
  const Tensor a = ops::segment_reduce(x.values, at_x, count, std::string("sum"));
  const Tensor b = ops::segment_reduce(y.values, at_y, count, std::string("sum"));
  Coo out = x;
  out.indices = unravel(all, x.sparse_shape());
  out.values = how == Combine::kAdd ? a + b : how == Combine::kSubtract ? a - b : a * b;
  return out;
}

Coo quotient(const Coo& x, const Coo& y) {
  const Shape sparse = x.sparse_shape();
  Shape rows = {product_of(sparse)};
  const Shape dense = x.dense_shape();
  rows.insert(rows.end(), dense.begin(), dense.end());
  Coo out = x;
  out.values = ops::reshape(ops::divide(x.dense(), y.dense()), rows);
  out.indices = unravel(range_of(rows[0], DType::kI64), sparse);
  return out;
}

struct CooPair {
  Coo x, y;
};

CooPair coo_pair(CallContext& c, const Shape& shape) {
  const std::string_view op = c.op().name();
  return {Coo(op, c.operand(0), c.operand(1), shape), Coo(op, c.operand(2), c.operand(3), shape)};
}

CooPair csr_pair(CallContext& c, const Shape& shape) {
  const std::string_view op = c.op().name();
  return {Csr(op, c.operand(0), c.operand(1), c.operand(2), shape).coo(op),
          Csr(op, c.operand(3), c.operand(4), c.operand(5), shape).coo(op)};
}

/// Sparse axes and dense axes of a permutation, which must not mix them.
std::pair<Axes, Axes> split_permutation(const Coo& x, const Axes& perm) {
  const auto rank = static_cast<int64_t>(x.shape.size());
  if (static_cast<int64_t>(perm.size()) != rank)
    reject(x.op, "perm must name all ", rank, " axes, not ", perm.size());
  Axes sparse, dense;
  std::vector<bool> seen(perm.size(), false);
  for (size_t i = 0; i < perm.size(); ++i) {
    const int64_t axis = axis_of(x.op, perm[i], rank);
    if (seen[static_cast<size_t>(axis)]) reject(x.op, "perm names axis ", axis, " twice");
    seen[static_cast<size_t>(axis)] = true;
    const bool is_sparse = axis < x.sparse_rank();
    if (is_sparse != (static_cast<int64_t>(i) < x.sparse_rank()))
      reject(x.op, "sparse axes must stay in front of dense ones");
    (is_sparse ? sparse : dense).push_back(is_sparse ? axis : axis - x.sparse_rank());
  }
  return {sparse, dense};
}

}  // namespace

void infer_sparse_linear_index(InferContext& c) {
  const Shape shape = c.attrs_as<SparseLinearIndexAttrs>().shape;
  check_shape(c, shape);
  c.check(c.rank(0) == 2, "indices must be [axes, n], not ", c.type(0));
  c.require_equal(c.shape(0)[0], Dim(static_cast<int64_t>(shape.size())),
                  "indices and shape differ in axes");
  c.result(DType::kI64, {c.shape(0)[1]});
}

Tensors decompose_sparse_coo_tensor(CallContext& c) {
  const auto a = c.attrs_as<SparseCooTensorAttrs>();
  const std::string_view op = c.op().name();
  const Tensor values = a.dtype ? ops::cast(c.operand(1), *a.dtype) : c.operand(1);
  const Tensor indices = int64_of(op, "indices", c.operand(0), 2);
  if (!a.shape) {
    if (indices.dim(1).equals(values.dim(0)) == false)
      reject(op, "there are ", indices.dim(1), " indices and ", values.dim(0), " values");
    return {indices, values + zeros_like(values)};
  }
  const Coo x(op, indices, values, *a.shape);
  // The check of the indices, when it runs.
  return {unravel(x.linear(), x.sparse_shape()), values + zeros_like(values)};
}

Tensors decompose_sparse_csr_tensor(CallContext& c) {
  const auto a = c.attrs_as<SparseCsrTensorAttrs>();
  const Tensor values = a.dtype ? ops::cast(c.operand(2), *a.dtype) : c.operand(2);
  const Csr x(c.op().name(), c.operand(0), c.operand(1), values, a.shape);
  const Coo checked = x.coo(c.op().name());
  const Tensor columns = unravel(checked.linear(), checked.shape);
  const auto last = static_cast<int64_t>(a.shape.size()) - 1;
  return {x.crows + integer(0),
          ops::squeeze(slice_axis(columns, 0, last, last + 1), std::vector<int64_t>{0}),
          values + zeros_like(values)};
}

Tensors decompose_sparse_to_dense(CallContext& c) {
  return {coo_of<SparseToDenseAttrs>(c).dense()};
}

Tensors decompose_sparse_csr_to_dense(CallContext& c) {
  return {csr_operand<SparseCsrToDenseAttrs>(c).coo(c.op().name()).dense()};
}

Tensors decompose_to_sparse_coo(CallContext& c) {
  const Tensor& x = c.operand(0);
  const int64_t axes = c.attrs_as<ToSparseCooAttrs>().sparse_dim.value_or(x.ndim());
  if (axes < 1 || axes > x.ndim())
    reject("to_sparse_coo", "sparse_dim must be from 1 to ", x.ndim(), ", not ", axes);
  Axes dense;
  for (int64_t i = axes; i < x.ndim(); ++i) dense.push_back(i);
  const Tensor there = ops::not_equal(x, integer(0));
  const Tensor places = places_of(dense.empty() ? there : ops::any(there, dense));
  return {ops::transpose(places, Axes{1, 0}), ops::gather_nd(x, places)};
}

Tensors decompose_to_sparse_csr(CallContext& c) {
  const Tensor& x = c.operand(0);
  if (x.ndim() != 2 && x.ndim() != 3)
    reject("to_sparse_csr", "x must have 2 or 3 dimensions, not ", x.type());
  const Tensor places = places_of(x);
  return parts_of(csr_of(Coo("to_sparse_csr", ops::transpose(places, Axes{1, 0}),
                             ops::gather_nd(x, places), x.shape())));
}

Tensors decompose_sparse_coo_to_csr(CallContext& c) {
  return parts_of(csr_of(coo_of<SparseCooToCsrAttrs>(c)));
}

Tensors decompose_sparse_csr_to_coo(CallContext& c) {
  return parts_of(csr_operand<SparseCsrToCooAttrs>(c).coo(c.op().name()));
}

Tensors decompose_sparse_coalesce(CallContext& c) {
  return parts_of(coo_of<SparseCoalesceAttrs>(c).coalesced());
}

Tensors decompose_sparse_is_same_shape(CallContext& c) {
  const auto a = c.attrs_as<SparseIsSameShapeAttrs>();
  return {full_of({}, a.x_shape == a.y_shape ? 1 : 0, DType::kBool)};
}

Tensors decompose_sparse_add(CallContext& c) {
  const auto [x, y] = coo_pair(c, c.attrs_as<SparseAddAttrs>().shape);
  return parts_of(combined(x, y, Combine::kAdd));
}

Tensors decompose_sparse_subtract(CallContext& c) {
  const auto [x, y] = coo_pair(c, c.attrs_as<SparseSubtractAttrs>().shape);
  return parts_of(combined(x, y, Combine::kSubtract));
}

Tensors decompose_sparse_multiply(CallContext& c) {
  const auto [x, y] = coo_pair(c, c.attrs_as<SparseMultiplyAttrs>().shape);
  return parts_of(combined(x, y, Combine::kMultiply));
}

Tensors decompose_sparse_divide(CallContext& c) {
  const auto [x, y] = coo_pair(c, c.attrs_as<SparseDivideAttrs>().shape);
  return parts_of(quotient(x, y));
}

Tensors decompose_sparse_csr_add(CallContext& c) {
  const auto [x, y] = csr_pair(c, c.attrs_as<SparseCsrAddAttrs>().shape);
  return parts_of(csr_of(combined(x, y, Combine::kAdd)));
}

Tensors decompose_sparse_csr_subtract(CallContext& c) {
  const auto [x, y] = csr_pair(c, c.attrs_as<SparseCsrSubtractAttrs>().shape);
  return parts_of(csr_of(combined(x, y, Combine::kSubtract)));
}

Tensors decompose_sparse_csr_multiply(CallContext& c) {
  const auto [x, y] = csr_pair(c, c.attrs_as<SparseCsrMultiplyAttrs>().shape);
  return parts_of(csr_of(combined(x, y, Combine::kMultiply)));
}

Tensors decompose_sparse_csr_divide(CallContext& c) {
  const auto [x, y] = csr_pair(c, c.attrs_as<SparseCsrDivideAttrs>().shape);
  return parts_of(csr_of(quotient(x, y)));
}

Tensors decompose_sparse_transpose(CallContext& c) {
  const Coo x = coo_of<SparseTransposeAttrs>(c);
  const auto [sparse, dense] = split_permutation(x, c.attrs_as<SparseTransposeAttrs>().perm);
  const auto count = static_cast<int64_t>(sparse.size());
  Axes all = {0};
  for (const int64_t axis : dense) all.push_back(axis + 1);
  return {ops::index_select(x.indices, Tensor(Array::from(sparse, {count})), 0),
          ops::transpose(x.values, all)};
}

Tensors decompose_sparse_reshape(CallContext& c) {
  const auto a = c.attrs_as<SparseReshapeAttrs>();
  const Coo x = coo_of<SparseReshapeAttrs>(c);
  const Shape dense = x.dense_shape();
  if (a.new_shape.size() <= dense.size())
    reject(x.op, "new_shape ", text(a.new_shape), " must keep the ", dense.size(), " dense axes");
  Shape sparse(a.new_shape.begin(), a.new_shape.end() - static_cast<std::ptrdiff_t>(dense.size()));
  for (size_t i = 0; i < dense.size(); ++i) {
    const Dim& kept = a.new_shape[sparse.size() + i];
    if (kept.equals(dense[i]) == false && kept.equals(Dim(-1)) != true)
      reject(x.op, "new_shape ", text(a.new_shape), " must keep the dense axes ", text(dense));
  }
  // The rule for -1 and 0 is that of reshape.
  const Tensor probe = ops::reshape(full_of(x.sparse_shape(), 0, DType::kBool), sparse);
  return {unravel(x.linear(), probe.shape()), x.values + zeros_like(x.values)};
}

Tensors decompose_sparse_slice(CallContext& c) {
  const auto a = c.attrs_as<SparseSliceAttrs>();
  const Coo x = coo_of<SparseSliceAttrs>(c);
  if (a.axes.size() != a.starts.size() || a.axes.size() != a.ends.size())
    reject(x.op, "axes, starts and ends differ in length");
  const auto rank = static_cast<int64_t>(x.shape.size());
  Tensor values = x.values, inside;
  std::vector<Tensor> shifts(static_cast<size_t>(x.sparse_rank()));
  for (size_t i = 0; i < a.axes.size(); ++i) {
    const int64_t axis = axis_of(x.op, a.axes[i], rank);
    const Dim& size = x.shape[static_cast<size_t>(axis)];
    const auto bound = [&](int64_t at) {
      const Dim from = at < 0 ? size + at : Dim(at);
      return maximum(Dim(0), minimum(from, size));
    };
    const Dim start = bound(a.starts[i]), end = maximum(start, bound(a.ends[i]));
    if (axis >= x.sparse_rank()) {
      values = slice_axis(values, axis - x.sparse_rank() + 1, start, end);
      continue;
    }
    const Tensor index = x.index(axis), first = dim_value(start, DType::kI64);
    const Tensor hit = ops::logical_and(ops::greater_equal(index, first),
                                        ops::less_than(index, dim_value(end, DType::kI64)));
    inside = inside.defined() ? ops::logical_and(inside, hit) : hit;
    shifts[static_cast<size_t>(axis)] = first;
  }
  Tensors rows;
  for (int64_t axis = 0; axis < x.sparse_rank(); ++axis) {
    const Tensor& shift = shifts[static_cast<size_t>(axis)];
    rows.push_back(shift.defined() ? x.index(axis) - shift : x.index(axis) + integer(0));
  }
  const Tensor indices = ops::stack(rows, 0);
  if (!inside.defined()) return {indices, values + zeros_like(values)};
  const Tensor kept = flat(ops::nonzero_rows(inside));
  return {ops::index_select(indices, kept, 1), ops::index_select(values, kept, 0)};
}

Tensors decompose_sparse_sum(CallContext& c) {
  const auto a = c.attrs_as<SparseSumAttrs>();
  const Coo x = coo_of<SparseSumAttrs>(c);
  const auto rank = static_cast<int64_t>(x.shape.size());
  for (const int64_t axis : a.axis.value_or(Axes{})) axis_of(x.op, axis, rank);
  const Axes axes = normal_axes(a.axis, rank);
  const auto is_summed = [&](int64_t axis) {
    return std::find(axes.begin(), axes.end(), axis) != axes.end();
  };
  Tensor values = a.dtype ? ops::cast(x.values, *a.dtype) : x.values;
  Axes dense;
  for (int64_t i = x.sparse_rank(); i < rank; ++i)
    if (is_summed(i)) dense.push_back(i - x.sparse_rank() + 1);
  if (!dense.empty()) values = ops::sum(values, dense, values.dtype(), a.keepdim);
  Tensors rows;
  Shape shape;
  for (int64_t i = 0; i < x.sparse_rank(); ++i) {
    if (!is_summed(i)) {
      rows.push_back(x.index(i));
      shape.push_back(x.shape[static_cast<size_t>(i)]);
    } else if (a.keepdim) {
      rows.push_back(full_of({x.count()}, 0, DType::kI64));
      shape.emplace_back(1);
    }
  }
  if (rows.empty()) {
    rows.push_back(full_of({x.count()}, 0, DType::kI64));
    shape.emplace_back(1);
  }
  for (int64_t i = 1; i < values.ndim(); ++i) shape.push_back(values.dim(i));
  return parts_of(Coo(x.op, ops::stack(rows, 0), values, shape).coalesced());
}

Tensors decompose_sparse_softmax(CallContext& c) {
  const Coo x = coo_of<SparseSoftmaxAttrs>(c);
  const auto rank = static_cast<int64_t>(x.shape.size());
  const int64_t axis = axis_of(x.op, c.attrs_as<SparseSoftmaxAttrs>().axis, rank);
  if (axis >= x.sparse_rank()) return {ops::softmax(x.values, axis - x.sparse_rank() + 1)};
  Tensors rows;
  Shape shape;
  for (int64_t i = 0; i < x.sparse_rank(); ++i) {
    if (i == axis) continue;
    rows.push_back(x.index(i));
    shape.push_back(x.shape[static_cast<size_t>(i)]);
  }
  if (rows.empty()) return {group_softmax(x.values, full_of({x.count()}, 0, DType::kI64), Dim(1))};
  const Tensors parts =
      ops::unique(ops::sparse_linear_index(ops::stack(rows, 0), shape), false, true);
  return {group_softmax(x.values, parts[1], parts[0].dim(0))};
}

Tensors decompose_sparse_csr_softmax(CallContext& c) {
  const Csr x = csr_operand<SparseCsrSoftmaxAttrs>(c);
  const auto rank = static_cast<int64_t>(x.shape.size());
  if (axis_of(c.op().name(), c.attrs_as<SparseCsrSoftmaxAttrs>().axis, rank) != rank - 1)
    reject(c.op().name(), "only the last axis of a CSR tensor has a softmax");
  const Shape rows(x.shape.begin(), x.shape.end() - 1);
  return {group_softmax(x.values, x.rows(), product_of(rows))};
}

Tensors decompose_sparse_mask_as(CallContext& c) {
  const Tensor indices = int64_of(c.op().name(), "indices", c.operand(1), 2);
  return {at_indices(c.op().name(), c.operand(0), indices)};
}

Tensors decompose_sparse_csr_mask_as(CallContext& c) {
  const std::string_view op = c.op().name();
  const Tensor &x = c.operand(0), &cols = c.operand(2);
  if (x.ndim() != 2 && x.ndim() != 3) reject(op, "x must have 2 or 3 dimensions, not ", x.type());
  const Csr mask(op, c.operand(1), cols, full_of({cols.dim(0)}, 0, x.dtype()), x.shape());
  return {at_indices(op, x, mask.coo(op).indices)};
}

Tensors decompose_sparse_pca_lowrank(CallContext& c) {
  const auto a = c.attrs_as<SparsePcaLowrankAttrs>();
  return ops::pca_lowrank(coo_of<SparsePcaLowrankAttrs>(c).dense(), a.q, a.center, a.niter);
}

}  // namespace paddle::rules
