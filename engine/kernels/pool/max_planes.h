#pragma once
// Max pooling of f32 planes without indices: maxima of each row's windows first, then of those
// across rows. A window of n takes about log2(n) maxima, each over whole rows.

#include <cstddef>

#include "kernels/pool/pool_shape.h"

namespace paddle::cpu {

class MaxPlanes {
 public:
  explicit MaxPlanes(const PoolShape& shape);

  size_t scratch_bytes() const;  ///< of one worker
  /// Pools one plane. Returns false, with part of it written, if a row that it reads has a NaN.
  bool run(const float* x, float* out, float* scratch) const;

 private:
  PoolShape s_;
  int64_t band_;    ///< result rows at a time
  int64_t padded_;  ///< length of a row with its padding
  int64_t places_;  ///< number of windows of a row if their stride were 1

  int64_t lines_of(int64_t rows) const { return (rows - 1) * s_.stride_height + s_.kernel_height; }
  bool pool_row(const float* x, float* padded, float* line) const;
  bool pool_band(const float* x, int64_t first, int64_t rows, float* out, float* scratch) const;
  void pool_columns(const float* x, float* out) const;
};

}  // namespace paddle::cpu
