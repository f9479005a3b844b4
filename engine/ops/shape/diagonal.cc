// Rules of arrange.yaml: diagonals and triangles.

#include <algorithm>

#include "ops/core/compose.h"
#include "ops/generated/creation.h"
#include "ops/generated/math.h"
#include "ops/generated/shape.h"
#include "ops/generated/shape_rules.h"

namespace paddle::rules {
namespace {

Dim first(const Dim& a, const Dim& b) { return minimum(a, b); }

/// 0, 1, … along one axis of `rank`.
Tensor count_along(const Dim& n, int64_t axis, int64_t rank) {
  Shape shape(static_cast<size_t>(rank), Dim(1));
  shape[static_cast<size_t>(axis)] = n;
  return ops::reshape(ops::arange(AttrValue(0), AttrValue(n), AttrValue(1), DType::kI64), shape);
}

/// column - row over two axes.
Tensor diagonal_number(const Tensor& x, int64_t row_axis, int64_t column_axis) {
  return count_along(x.dim(column_axis), column_axis, x.ndim()) -
         count_along(x.dim(row_axis), row_axis, x.ndim());
}

}  // namespace

void infer_diagonal(InferContext& c) {
  const auto a = c.attrs_as<DiagonalAttrs>();
  c.check(c.rank(0) >= 2, "x must have at least two dimensions, not ", c.type(0));
  const int64_t row = c.axis(a.axis1, c.rank(0)), column = c.axis(a.axis2, c.rank(0));
  c.check(row != column, "axis1 and axis2 are the same");
  const Shape& x = c.shape(0);
  const Dim rows = x[static_cast<size_t>(row)], columns = x[static_cast<size_t>(column)];
  Shape out;
  for (int64_t i = 0; i < c.rank(0); ++i)
    if (i != row && i != column) out.push_back(x[static_cast<size_t>(i)]);
  const Dim length =
      a.offset >= 0 ? first(rows, columns - a.offset) : first(rows + a.offset, columns);
  out.push_back(maximum(0, length));
  c.result(c.dtype(0), out);
}

Layout view_diagonal(const Layout& x, const Attrs& attrs, const Dims& shape) {
  const DiagonalAttrs a(attrs);
  const auto rank = static_cast<int64_t>(x.shape.size());
  const auto row = static_cast<size_t>(a.axis1 < 0 ? a.axis1 + rank : a.axis1);
  const auto column = static_cast<size_t>(a.axis2 < 0 ? a.axis2 + rank : a.axis2);
  Layout out = x;
  out.shape = shape;
  out.strides.clear();
  for (size_t i = 0; i < x.shape.size(); ++i)
    if (i != row && i != column) out.strides.push_back(x.strides[i]);
  out.strides.push_back(x.strides[row] + x.strides[column]);
  if (out.size() > 0)
    out.offset += a.offset >= 0 ? a.offset * x.strides[column] : -a.offset * x.strides[row];
  return out;
}

Tensor write_diagonal(const Tensor& base, const Tensor& value, const Attrs& attrs) {
  const DiagonalAttrs a(attrs);
  return ops::diagonal_scatter(base, value, a.offset, a.axis1, a.axis2);
}

Tensors vjp_diagonal(VjpContext& c) {
  const auto a = c.attrs_as<DiagonalAttrs>();
  return {
      ops::diagonal_scatter(zeros_like(c.operand(0)), c.cotangent(), a.offset, a.axis1, a.axis2)};
}

// y runs along the rows of its diagonal (below the main diagonal, the columns): pads it to their
// length and selects it on the diagonal.
Tensors decompose_diagonal_scatter(CallContext& c) {
  const auto a = c.attrs_as<DiagonalScatterAttrs>();
  const Tensor &x = c.operand(0), &y = c.operand(1);
  const int64_t rank = x.ndim();
  if (rank < 2) reject("diagonal_scatter", "x must have at least two dimensions, not ", x.type());
  const int64_t row = axis_of("diagonal_scatter", a.axis1, rank),
                column = axis_of("diagonal_scatter", a.axis2, rank);
  const Shape diagonal = ops::diagonal(x, a.offset, a.axis1, a.axis2).shape();
  bool fits = y.ndim() == rank - 1;
  for (size_t i = 0; fits && i < diagonal.size(); ++i)
    fits = y.shape()[i].equals(diagonal[i]) != false;
  if (!fits)
    reject("diagonal_scatter", "y is ", y.type(), ", the diagonal of x is ", text(diagonal));
  const int64_t along = a.offset >= 0 ? row : column, other = a.offset >= 0 ? column : row;
  std::vector<int64_t> border(static_cast<size_t>(2 * y.ndim()), 0);
  const Dim missing = x.dim(along) - y.dim(-1);
  border.back() = missing.value();
  const Tensor padded = ops::pad(y, border);
  // The last axis of y moves to `along`, and `other` comes in with size 1.
  Axes perm;
  for (int64_t i = 0, next = 0; i < rank; ++i) {
    if (i == other) continue;
    perm.push_back(i == along ? rank - 2 : next++);
  }
  const Tensor placed =
      ops::unsqueeze(y.ndim() > 1 ? ops::transpose(padded, perm) : padded, {other});
  const Tensor here = ops::equal(diagonal_number(x, row, column), Tensor::number(a.offset));
  return {ops::where(here, placed, x)};
}

Tensors decompose_diag_embed(CallContext& c) {
  const auto a = c.attrs_as<DiagEmbedAttrs>();
  const Tensor& x = c.operand(0);
  if (x.ndim() == 0) reject("diag_embed", "input must have at least one dimension");
  const int64_t rank = x.ndim() + 1;
  const int64_t row = axis_of("diag_embed", a.dim1, rank),
                column = axis_of("diag_embed", a.dim2, rank);
  if (row == column) reject("diag_embed", "dim1 and dim2 are the same");
  const Dim n = x.dim(-1) + (a.offset < 0 ? -a.offset : a.offset);
  Shape shape(x.shape().begin(), x.shape().end() - 1);
  shape.insert(shape.begin() + std::min(row, column), n);
  shape.insert(shape.begin() + std::max(row, column), n);
  return {ops::diagonal_scatter(full_of(shape, 0, x.dtype()), x, a.offset, row, column)};
}

Tensors decompose_diag(CallContext& c) {
  const auto a = c.attrs_as<DiagAttrs>();
  const Tensor& x = c.operand(0);
  if (x.ndim() == 2) return {ops::diagonal(x, a.offset)};
  if (x.ndim() > 2) reject("diag", "x must have at most two dimensions, not ", x.type());
  const Tensor vector = x.ndim() == 0 ? ops::reshape(x, Shape{1}) : x;
  const Dim n = vector.dim(0) + (a.offset < 0 ? -a.offset : a.offset);
  return {ops::diagonal_scatter(full_of({n, n}, a.padding_value, x.dtype()), vector, a.offset)};
}

Tensors decompose_diagflat(CallContext& c) {
  return {
      ops::diag_embed(ops::reshape(c.operand(0), Shape{-1}), c.attrs_as<DiagflatAttrs>().offset)};
}

namespace {

Tensor triangle(const char* op, const Tensor& x, int64_t diagonal, bool lower) {
  if (x.ndim() < 2) reject(op, "x must have at least two dimensions, not ", x.type());
  const Tensor number = diagonal_number(x, x.ndim() - 2, x.ndim() - 1),
               limit = Tensor::number(diagonal);
  const Tensor kept = lower ? ops::less_equal(number, limit) : ops::greater_equal(number, limit);
  return ops::where(kept, x, zeros_like(x));
}

}  // namespace

Tensors decompose_tril(CallContext& c) {
  return {triangle("tril", c.operand(0), c.attrs_as<TrilAttrs>().diagonal, true)};
}
Tensors decompose_triu(CallContext& c) {
  return {triangle("triu", c.operand(0), c.attrs_as<TriuAttrs>().diagonal, false)};
}

}  // namespace paddle::rules
