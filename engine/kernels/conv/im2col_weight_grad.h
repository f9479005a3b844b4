#pragma once
// The weight gradient of a convolution by im2col and GEMM over pixels, in f32: the transposed
// output gradient times the windows of the input.

#include <cstddef>

#include "kernels/conv/conv_shape.h"

namespace paddle::cpu {

/// dw [out, in, row, column] from x and dy in NHWC. With AVX2 this takes about 0.7 of the time of
/// oneDNN, whose code for it is weaker than for AVX-512.
class Im2colWeightGrad {
 public:
  /// True for 2-D convolutions of one group for which this is faster than oneDNN.
  static bool is_faster(const ConvShape& shape);

  explicit Im2colWeightGrad(const ConvShape& shape);

  size_t scratch_bytes() const;
  void run(const float* x, const float* dy, float* dw, std::byte* scratch) const;

 private:
  void accumulate_block(int64_t task, const float* x, const float* dy, float* sums,
                        std::byte* worker_scratch) const;
  void im2col(const float* x, int64_t pixel, int64_t count, int64_t first, int64_t columns,
              float* to) const;

  int64_t kernel_positions() const { return s_.kernel_height * s_.kernel_width; }
  /// Bytes of the gradient as [out, row, column, in], if that is not the result's layout.
  size_t sums_bytes() const;
  size_t task_bytes() const;

  ConvShape s_;
  bool is_pointwise_;  ///< windows are the pixels of the input
  int64_t rows_, columns_;
  int64_t row_blocks_, column_blocks_, workers_;
};

}  // namespace paddle::cpu
