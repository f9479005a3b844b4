#pragma once
// Row-sparse tensors: gradients of tables of which few rows were read. Such a tensor has the shape
// of the table but holds only (indices, rows); a row may stand more than once and then counts as
// the sum. They exist while a program is traced or run eagerly, never as one value of the IR:
// `call` passes them through addition, scaling, clipping and optimizer updates as operations on
// their parts, and makes them dense for everything else.

#include "tensor/tensor.h"

namespace paddle {

struct Op;
struct Attrs;

struct RowSparse : Content {
  Tensor indices;  ///< int64 [n]; -1: no row of the table, and the one at hand is zero
  Tensor rows;     ///< [n, width]
};

/// A tensor [count, width] that is zero but for the rows at `indices`.
Tensor make_row_sparse(const Tensor& indices, const Tensor& rows, const Dim& count);
/// The parts, or null for a dense tensor.
const RowSparse* row_sparse(const Tensor& tensor);
/// The same tensor without the sparse form.
Tensor densify(const Tensor& tensor);
/// The result of an operation on row-sparse operands if it passes them through, else no tensors:
/// the caller then densifies.
Tensors row_sparse_call(const Op& op, const Tensors& operands, const Attrs& attrs);

}  // namespace paddle
