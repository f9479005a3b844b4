#pragma once
// Row-sparse tensors: gradients of embedding tables of which few rows were read. Such a tensor has
// the shape of the table but holds only (indices, rows); duplicate rows are summed. They exist
// while a program is traced or run eagerly, never as one value of the IR: `call` maps addition,
// scaling, clipping and optimizer updates to operations on their parts and densifies for everything
// else.

#include "tensor/tensor.h"

namespace paddle {

struct Op;
struct Attrs;

struct RowSparse : Content {
  Tensor indices;  ///< int64 [n]; -1 for an unused entry, whose row is zero
  Tensor rows;     ///< [n, width]
};

/// A tensor [count, width] that is zero except for the rows at `indices`.
Tensor make_row_sparse(const Tensor& indices, const Tensor& rows, const Dim& count);
/// The indices and rows, or null for a dense tensor.
const RowSparse* row_sparse(const Tensor& tensor);
/// The tensor in dense form.
Tensor densify(const Tensor& tensor);
/// The result of an operation on row-sparse operands if it has a sparse form; else {}, and the
/// caller densifies.
Tensors row_sparse_call(const Op& op, const Tensors& operands, const Attrs& attrs);

}  // namespace paddle
