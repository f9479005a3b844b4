#pragma once
// Strided operands: which layouts oneDNN reads directly, and dense copies of the others. Only for
// .cc files of kernels/: it exposes oneDNN types.

#include "kernels/onednn/program.h"

namespace paddle::onednn {

/// Adjusts strides of axes of size 1, which are arbitrary, so that the matrix looks packed. False
/// if oneDNN does not accept the strides because neither axis is contiguous.
bool normalize_strides(int64_t rows, int64_t columns, int64_t& row, int64_t& column);

/// Batched matrices [rows, columns] with these strides; a batch stride of 0 is a broadcast.
dnnl::memory::desc matrix_desc(dnnl::memory::data_type type, const Dims& batch,
                               const Dims& batch_strides, int64_t rows, int64_t columns,
                               int64_t row, int64_t column);

/// An operand or a dense copy of it, with its strides.
struct DenseOperand {
  MemoryRef slot;
  Dims strides;
};
/// Order of the axes of a dense copy.
enum class AxisOrder : uint8_t { kLogical, kMemory };
/// The operand itself if it is dense in this order and `xor_mask` is 0, else a dense copy whose
/// bytes are XORed with the mask.
DenseOperand make_dense(Program& program, size_t operand, const Layout& layout,
                        AxisOrder order = AxisOrder::kLogical, uint8_t xor_mask = 0);

}  // namespace paddle::onednn
