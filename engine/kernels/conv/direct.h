#pragma once
// Convolutions with few channels, in f32, whose vectors hold pixels of a row: for images with
// channels first that are wide, or few (else see batch_conv.h). Rows are copied with their padding,
// whose zeros are multiplied as well: a weight that is not finite makes NaN of them.

#include <cstddef>

#include "kernels/conv/conv_shape.h"
#include "kernels/epilogue.h"

namespace paddle::cpu {

/// y [batch, out, row, column] from x [batch, in, row, column] and weights [out, in, row, column].
class DirectConvolution {
 public:
  /// About the time of oneDNN in units of ours, or 0 where nothing is computed here: for images
  /// with channels first, one group, no dilation, strides of 1 along the rows.
  static double estimated_speedup(const ConvShape& shape);
  explicit DirectConvolution(const ConvShape& shape);

  size_t scratch_bytes() const;
  /// `finish` without a residual.
  void run(const float* x, const float* weight, const BoundEpilogue& epilogue, float* y,
           std::byte* scratch) const;

 private:
  void pack(const float* weight, float* packed) const;
  void copy_padded_rows(const float* image, int64_t first_row, int64_t rows, float* padded) const;
  void compute_strip(int64_t strip, const float* x, const float* packed,
                     const BoundEpilogue& epilogue, float* y, float* padded) const;

  ConvShape shape_;
  int64_t workers_;          ///< that take strips, one after the other
  int64_t rows_, strips_;    ///< rows of the output in a strip, at most, and strips of an image
  int64_t in_rows_, pitch_;  ///< rows that a strip reads, at most, and floats of each
  size_t packed_floats_, padded_floats_;
};

}  // namespace paddle::cpu
