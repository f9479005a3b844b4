#pragma once
// Strided operands: what of them oneDNN takes as it lies, and dense copies of the rest. For the .cc
// files of this folder only.

#include "kernels/onednn/program.h"

namespace paddle::onednn {

/// Strides of a matrix that oneDNN accepts: those of axes with one element are free, so they are
/// made to look packed. False if neither axis is contiguous.
bool normalize_strides(int64_t rows, int64_t columns, int64_t& row, int64_t& column);

/// Matrices [rows, columns] with these strides, in batches; a stride of 0 is a broadcast.
dnnl::memory::desc matrix_desc(dnnl::memory::data_type type, const Dims& batch,
                               const Dims& batch_strides, int64_t rows, int64_t columns,
                               int64_t row, int64_t column);

/// An operand, or a dense copy of it, and the strides of its axes there.
struct DenseOperand {
  MemoryRef slot;
  Dims strides;
};
/// How the axes of a dense copy follow each other.
enum class AxisOrder : uint8_t { kLogical, kMemory };
/// The operand itself where it is dense in this order and no bits of its bytes are to be `flipped`,
/// else a copy that is.
DenseOperand make_dense(Program& program, size_t operand, const Layout& layout,
                        AxisOrder order = AxisOrder::kLogical, uint8_t xor_mask = 0);

}  // namespace paddle::onednn
