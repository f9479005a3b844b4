// Matrix products.

#include "onnx/ops/helpers.h"
#include "ops/generated/linalg.h"
#include "ops/generated/math.h"

namespace paddle::onnx {
namespace {

/// A vector is a row on the left and a column on the right.
Values matmul(NodeCall& c) {
  c.check_same_dtype({0, 1});
  const Tensor &x = c.tensor(0), &y = c.tensor(1);
  if (is_float(x.dtype())) return {ops::matmul(x, y)};
  return {ops::cast(ops::matmul(ops::cast(x, DType::kF64), ops::cast(y, DType::kF64)), x.dtype())};
}

Values gemm(NodeCall& c) {
  c.check_same_dtype({0, 1, 2});
  const DType dtype = c.tensor(0).dtype();
  const DType work = is_float(dtype) ? dtype : DType::kF64;
  const double alpha = c.float_attr("alpha", 1), beta = c.float_attr("beta", 1);
  Tensor out = ops::matmul(ops::cast(c.tensor(0), work), ops::cast(c.tensor(1), work),
                           c.bool_attr("transA", false), c.bool_attr("transB", false));
  if (alpha != 1) out = out * alpha;
  if (c.has_input(2)) {
    const Tensor bias = ops::cast(c.tensor(2), work);
    out = out + (beta == 1 ? bias : bias * beta);
  }
  return {ops::cast(out, dtype)};
}

/// Spaces and upper-case letters are allowed in the equation.
Values einsum(NodeCall& c) {
  std::string equation;
  for (const char ch : c.string_attr("equation", ""))
    if (ch != ' ') equation += ch;
  Tensors operands = c.tensors();
  const DType dtype = c.tensor(0).dtype();
  if (is_float(dtype)) return {ops::einsum(equation, operands)};
  for (Tensor& t : operands) t = ops::cast(t, DType::kF64);
  return {ops::cast(ops::einsum(equation, operands), dtype)};
}

Values determinant(NodeCall& c) {
  return {compute_in_float32(c.tensor(0), [](const Tensor& x) { return ops::det(x); })};
}

}  // namespace

OperatorTable matmul_operators() {
  static constexpr Operator operators[] = {
      {"MatMul", 1, matmul},
      {"Gemm", 1, gemm},
      {"Einsum", 1, einsum},
      {"Det", 1, determinant},
  };
  return operators;
}

}  // namespace paddle::onnx
