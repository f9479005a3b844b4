#pragma once
// Sparse tensors inside decompositions: COO and CSR values with their shapes, and what brings one
// form into another. For the .cc files of this folder.

#include <string_view>

#include "ops/core/compose.h"

namespace paddle::rules {

/// indices [sparse axes, n] int64, values [n, dense axes...].
struct Coo {
  std::string_view op;
  Tensor indices, values;
  Shape shape;  ///< sparse axes, then dense axes

  /// Checks what is known while tracing; throws kUsage in the operation's name.
  Coo(std::string_view op, const Tensor& indices, const Tensor& values, const Shape& shape);

  int64_t sparse_rank() const { return indices.dim(0).value(); }
  Shape sparse_shape() const { return {shape.begin(), shape.begin() + sparse_rank()}; }
  Shape dense_shape() const { return {shape.begin() + sparse_rank(), shape.end()}; }
  Dim count() const { return values.dim(0); }
  /// Index along one sparse axis, [n].
  Tensor index(int64_t axis) const;
  /// Row-major position in the sparse shape, [n]; indices out of range are rejected when it runs.
  Tensor linear() const;
  Tensor dense() const;
  /// The different indices in order, the sums of their values, and which one each element is.
  struct Distinct {
    Tensor linear, inverse;
  };
  Distinct distinct() const;
  Coo coalesced() const;
};

/// crows [rows + 1] or, for batches, [batch * (rows + 1)].
struct Csr {
  Tensor crows, cols, values;
  Shape shape;
  Csr(std::string_view op, const Tensor& crows, const Tensor& cols, const Tensor& values,
      const Shape& shape);
  /// Row of each element, counted over all batches.
  Tensor rows() const;
  Coo coo(std::string_view op) const;
};
Csr csr_of(const Coo& coo);

/// The elements of a vector of indices: [count] int64.
Tensor int64_of(std::string_view op, const char* name, const Tensor& x, int64_t rank);
/// Row-major positions back to indices [axes, n].
Tensor unravel(const Tensor& linear, const Shape& shape);
/// Number of elements of a shape.
Dim product_of(const Shape& shape);
/// A vector along the first axis of a tensor of `rank` dimensions.
Tensor along_first(const Tensor& v, int64_t rank);
/// Values of one softmax over each group of elements.
Tensor group_softmax(const Tensor& values, const Tensor& group, const Dim& groups);
/// A shape as a tensor whose value is known where the shape is constant.
Tensor shape_tensor(const Shape& shape);

}  // namespace paddle::rules
