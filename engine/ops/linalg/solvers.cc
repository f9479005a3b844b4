// Rules of solvers.yaml.

#include "ops/core/operators.h"
#include "ops/generated/complex.h"
#include "ops/generated/creation.h"
#include "ops/generated/linalg.h"
#include "ops/generated/linalg_rules.h"
#include "ops/generated/reduce.h"
#include "ops/generated/shape.h"
#include "ops/linalg/adjoint.h"
#include "tensor/complex.h"

namespace paddle::rules {
namespace {

void check_square(InferContext& c, size_t operand) {
  const Shape& x = c.shape(operand);
  c.check(x.size() >= 2, "expected matrices, found ", c.type(operand));
  c.require_equal(x[x.size() - 2], x.back(), str("expected square matrices: ", c.type(operand)));
}

/// A number for each matrix, as a matrix.
Tensor per_matrix(const Tensor& x) { return ops::unsqueeze(x, {-1, -2}); }

/// The triangle of x that a solver reads.
Tensor triangle(const Tensor& x, bool upper, bool unit) {
  if (x.ndim() < 2) fail(ErrorCode::kUsage, "triangular_solve: x must be a matrix, not ", x.type());
  if (!unit) return upper ? ops::triu(x) : ops::tril(x);
  const Tensor strict = upper ? ops::triu(x, 1) : ops::tril(x, -1);
  return strict + ops::eye(x.dim(-1), x.dim(-1), x.dtype());
}

/// The symmetric matrix with a Cholesky factor.
Tensor product_of_factor(const char* op, const Tensor& factor, bool upper) {
  if (factor.ndim() < 2 || factor.dim(-1).equals(factor.dim(-2)) == false)
    fail(ErrorCode::kUsage, op, ": the factor must be a square matrix, not ", factor.type());
  const Tensor kept = upper ? ops::triu(factor) : ops::tril(factor);
  return upper ? ops::matmul(adjoint(kept), kept) : ops::matmul(kept, adjoint(kept));
}

/// Solves with the batches broadcast to one.
Tensor solved(const Tensor& x, const Tensor& y) {
  if (x.ndim() < 2 || y.ndim() < 2)
    fail(ErrorCode::kUsage, "solve: expected matrices, found ", x.type(), " and ", y.type());
  const Shape bx = batch_of(x.shape()), by = batch_of(y.shape());
  if (same_shape(bx, by)) return ops::solve_matrices(x, y);
  const Shape batch = (full_of(bx, 0, x.dtype()) + full_of(by, 0, x.dtype())).shape();
  const auto widened = [&](const Tensor& t) {
    Shape shape = batch;
    shape.push_back(t.dim(-2));
    shape.push_back(t.dim(-1));
    return ops::expand(t, shape);
  };
  return ops::solve_matrices(widened(x), widened(y));
}

}  // namespace

void infer_square_matrix(InferContext& c) {
  check_square(c, 0);
  c.result(c.dtype(0), c.shape(0));
}

void infer_determinant(InferContext& c) {
  check_square(c, 0);
  c.result(c.dtype(0), batch_of(c.shape(0)));
}

void infer_log_abs_det(InferContext& c) {
  infer_determinant(c);
  c.result(real_type(c.dtype(0)), batch_of(c.shape(0)));
}

void infer_solve_matrices(InferContext& c) {
  check_square(c, 0);
  const Shape &x = c.shape(0), &y = c.shape(1);
  c.check(x.size() == y.size(), "operands of different rank: ", c.type(0), " and ", c.type(1));
  for (size_t i = 0; i + 1 < x.size(); ++i)
    c.require_equal(x[i], y[i], str("x is ", c.type(0), ", y is ", c.type(1)));
  c.result(c.dtype(0), y);
}

void infer_singular_values(InferContext& c) {
  const Shape& x = c.shape(0);
  c.check(x.size() >= 2, "expected matrices, found ", c.type(0));
  const Dim rows = x[x.size() - 2], columns = x.back();
  const Dim least = minimum(rows, columns);
  Shape values = batch_of(x), u = values, vh = values;
  values.push_back(least);
  u.insert(u.end(), {rows, least});
  vh.insert(vh.end(), {least, columns});
  c.result(real_type(c.dtype(0)), values);
  c.result(c.dtype(0), u);
  c.result(c.dtype(0), vh);
}

// Townsend, "Differentiating the singular value decomposition" (2016). Gradients of the vectors
// (second order) need singular values that differ.
Tensors vjp_singular_values(VjpContext& c) {
  const Tensor &s = c.plain_result(0), &u = c.plain_result(1), &vh = c.plain_result(2);
  const Tensor row = ops::unsqueeze(s, {-2}), column = ops::unsqueeze(s, {-1});
  Tensor middle;
  const auto add = [](Tensor& sum, const Tensor& t) { sum = sum.defined() ? sum + t : t; };
  const Tensor identity = ops::eye(s.dim(-1), s.dim(-1), s.dtype());
  if (c.cotangent(0).defined()) add(middle, ops::unsqueeze(c.cotangent(0), {-2}) * identity);
  Tensor outside;
  const auto turned = [&](const Tensor& product) {
    const Tensor gap = row * row - column * column + identity;
    return (product - adjoint(product)) * (1.0 - identity) / gap;
  };
  if (c.cotangent(1).defined()) {
    const Tensor& g = c.cotangent(1);
    const Tensor inner = ops::matmul(adjoint(u), g);
    add(middle, turned(inner) * row);
    // A phase that u and v share changes nothing, so only the part of u is its own.
    if (is_complex(u.dtype())) add(middle, (inner - adjoint(inner)) * 0.5 * identity / row);
    add(outside, ops::matmul((g - ops::matmul(u, inner)) / row, vh));
  }
  if (c.cotangent(2).defined()) {
    const Tensor& g = c.cotangent(2);
    const Tensor inner = ops::matmul(g, adjoint(vh));
    add(middle, column * turned(adjoint(inner)));
    add(outside, ops::matmul(u / row, g - ops::matmul(inner, vh)));
  }
  Tensor out = ops::matmul(ops::matmul(u, middle), vh);
  if (outside.defined()) out = out + outside;
  return {out};
}

Tensors decompose_matrix_norm(CallContext& c) {
  const auto a = c.attrs_as<MatrixNormAttrs>();
  if (a.axis.size() != 2)
    fail(ErrorCode::kUsage, "matrix_norm: axis must name two axes, not ", a.axis.size());
  return {ops::norm(c.operand(0), a.p, a.axis, a.keepdim)};
}

Tensors vjp_inv(VjpContext& c) {
  const Tensor back = transposed(c.result(0));
  return {-ops::matmul(ops::matmul(back, c.cotangent()), back)};
}

Tensors vjp_det(VjpContext& c) {
  return {per_matrix(c.cotangent() * c.result(0)) * transposed(ops::inv(c.operand(0)))};
}

Tensors vjp_log_abs_det(VjpContext& c) {
  Tensor weight = c.cotangent_or_zeros(1);
  if (is_complex(c.plain_operand(0).dtype())) {
    // The sign turns with the imaginary part of the trace.
    const Tensor turn = ops::imag(c.cotangent_or_zeros(0) * c.result(0));
    weight = ops::complex(weight, turn);
  }
  return {per_matrix(weight) * transposed(ops::inv(c.operand(0)))};
}

Tensors decompose_slogdet(CallContext& c) {
  return {ops::stack(ops::log_abs_det(c.operand(0)), 0)};
}

Tensors vjp_solve_matrices(VjpContext& c) {
  const Tensor dy = ops::solve_matrices(transposed(c.operand(0)), c.cotangent());
  return {-ops::matmul(dy, c.result(0), false, true), dy};
}

Tensors decompose_solve(CallContext& c) {
  const bool left = c.attrs_as<SolveAttrs>().left;
  const Tensor x = left ? c.operand(0) : transposed(c.operand(0));
  const Tensor& y = c.operand(1);
  const bool batch_of_vectors =
      y.ndim() == x.ndim() - 1 &&
      same_shape(y.shape(), Shape(x.shape().begin(), x.shape().end() - 1));
  if (y.ndim() == 1 || batch_of_vectors)
    return {ops::squeeze(solved(x, ops::unsqueeze(y, {-1})), {{-1}})};
  return {left ? solved(x, y) : transposed(solved(x, transposed(y)))};
}

Tensors decompose_triangular_solve(CallContext& c) {
  const auto a = c.attrs_as<TriangularSolveAttrs>();
  const Tensor x = triangle(c.operand(0), a.upper, a.unitriangular);
  return {solved(a.transpose ? transposed(x) : x, c.operand(1))};
}

// Murray, "Differentiation of the Cholesky decomposition" (2016).
Tensors vjp_cholesky(VjpContext& c) {
  const bool upper = c.attrs_as<CholeskyAttrs>().upper;
  const Tensor factor = upper ? adjoint(c.plain_result(0)) : c.plain_result(0);
  const Tensor g = upper ? adjoint(c.cotangent()) : c.cotangent();
  const Tensor product = ops::tril(ops::matmul(adjoint(factor), ops::tril(g)));
  const Tensor halved = product - ops::tril(ops::triu(product)) * 0.5;
  const Tensor back = ops::inv(factor);
  const Tensor s = ops::matmul(ops::matmul(adjoint(back), halved), back);
  return {(s + adjoint(s)) * 0.5};
}

Tensors decompose_cholesky_solve(CallContext& c) {
  const bool upper = c.attrs_as<CholeskySolveAttrs>().upper;
  return {solved(product_of_factor("cholesky_solve", c.operand(1), upper), c.operand(0))};
}

Tensors decompose_cholesky_inverse(CallContext& c) {
  const Tensor& x = c.operand(0);
  if (x.ndim() != 2 || x.dim(0).equals(x.dim(1)) == false)
    fail(ErrorCode::kUsage, "cholesky_inverse: x must be one square matrix, not ", x.type());
  const bool upper = c.attrs_as<CholeskyInverseAttrs>().upper;
  return {ops::inv(upper ? ops::matmul(adjoint(x), x) : ops::matmul(x, adjoint(x)))};
}

}  // namespace paddle::rules
