#pragma once
// Products of a few rows with a large matrix, which take as long as reading the matrix: it is read
// once, in the order in which it lies in memory, and never packed.

#include <cstdint>
#include <memory>

#include "kernels/epilogue.h"
#include "kernels/linalg/matmul_shape.h"

namespace paddle::cpu {

inline constexpr int64_t kMaxFewRows = 8;
/// Columns that are computed at a time, for a product of this many rows.
inline int64_t few_rows_tile(int64_t rows) { return rows <= 2 ? 2048 : 512; }

/// T is float, or uint16_t for bfloat16. The matrix is [k, n] with a stride of 1 along n or along
/// k.
template <class T>
struct FewRows {
  int64_t rows, k;
  const T* x;  ///< [rows, k], contiguous along k
  int64_t x_row;
  const T* y;
  int64_t y_row, y_column;  ///< strides of k and n, one of them 1
};

/// sums[r * stride + j] = Σ_k x[r, k] y[k, begin + j] for columns of at most few_rows_tile.
void multiply_few_rows(const FewRows<float>& product, int64_t begin, int64_t columns, float* sums,
                       int64_t stride);
void multiply_few_rows(const FewRows<uint16_t>& product, int64_t begin, int64_t columns,
                       float* sums, int64_t stride);

bool is_few_rows(const MatmulShape& shape);
/// The kernel of such a product; null where the bias or the activation has no vector loop. Operands
/// are as those of matmul_with_epilogue (linalg/matmul.h).
std::unique_ptr<Kernel> prepare_few_rows(const KernelRequest& request, const MatmulShape& shape,
                                         const OperandIndices& at, const Epilogue& epilogue,
                                         bool biased);

}  // namespace paddle::cpu
