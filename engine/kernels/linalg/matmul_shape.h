#pragma once
// Sizes and strides of a matmul: NumPy's rules for vectors, batches and transposition in one normal
// form. All implementations start from it.

#include <vector>

#include "ops/core/op.h"

namespace paddle::cpu {

/// result[b, m, n] = Σ_k x[b, m, k] y[b, k, n] over batches of `batch` dims, whose strides are 0
/// where an operand broadcasts. Strides count elements. The result is contiguous.
struct MatmulShape {
  Dims batch, x_batch, y_batch;
  int64_t m = 1, n = 1, k = 1;
  int64_t x_row = 0, x_column = 0;  ///< strides of m and k in x
  int64_t y_row = 0, y_column = 0;  ///< strides of k and n in y

  int64_t batches() const { return element_count(std::span<const int64_t>(batch)); }
  /// Element offset of a batch.
  int64_t x_offset(int64_t index) const { return offset(x_batch, index); }
  int64_t y_offset(int64_t index) const { return offset(y_batch, index); }

  static MatmulShape of(const Layout& x, const Layout& y, bool transpose_x, bool transpose_y);

 private:
  int64_t offset(const Dims& strides, int64_t index) const;
};

}  // namespace paddle::cpu
