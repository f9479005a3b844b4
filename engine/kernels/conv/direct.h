#pragma once
// Direct convolution for few channels, in f32, whose vectors hold pixels of a row: for wide NCHW
// images, or few of them (otherwise see chwn.h), and for groups of few channels in either layout.
// Rows are copied with their padding, whose zeros are multiplied too: weights that are not finite
// turn them into NaN.

#include <cstddef>

#include "kernels/conv/conv_shape.h"
#include "kernels/epilogue.h"

namespace paddle::cpu {

/// y [batch, out, row, column] from x [batch, in, row, column] and weights [out, in, row, column],
/// or with channels last in y and x; `in` of the weights are those of a group.
class DirectConvolution {
 public:
  /// Estimated speedup over oneDNN, 0 if not supported: requires NCHW or several groups, no
  /// dilation, and a column stride of 1.
  static double estimated_speedup(const ConvShape& shape);
  explicit DirectConvolution(const ConvShape& shape);

  size_t scratch_bytes() const;
  /// `epilogue` must not have a residual.
  void run(const float* x, const float* weight, const BoundEpilogue& epilogue, float* y,
           std::byte* scratch) const;

 private:
  void pack(const float* weight, float* packed) const;
  void copy_padded_rows(const float* image, int64_t first_row, int64_t rows, float* padded) const;
  /// Rows of some outputs of an image, [output, pixel], to pixels of y.
  void scatter_outputs(const float* from, int64_t outputs, int64_t pixels, float* y) const;
  void compute_strip(int64_t task, const float* x, const float* packed,
                     const BoundEpilogue& epilogue, float* y, float* scratch) const;

  ConvShape shape_;
  int64_t workers_;          ///< that process strips one after the other
  int64_t rows_, strips_;    ///< output rows in a strip, at most, and strips per image
  int64_t in_rows_, pitch_;  ///< input rows that a strip reads, at most, and floats per row
  size_t packed_floats_, padded_floats_, tile_floats_;
};

}  // namespace paddle::cpu
