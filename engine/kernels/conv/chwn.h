#pragma once
// Convolution in CHWN layout, in f32, for few channels and many images: vectors hold one pixel of
// several images, so that neither channels nor image width have to fill them, and padding costs
// nothing. A worker transposes a strip of rows of some images to [row, column, channel, image] in
// scratch and computes there. (Nervana's "CHWN" layout.)

#include <cstddef>

#include "kernels/conv/conv_shape.h"
#include "kernels/epilogue.h"

namespace paddle::cpu {

struct RowRange {
  int64_t first, last;
  int64_t count() const { return last > first ? last - first : 0; }
};

/// A unit of work.
struct ChwnStrip {
  int64_t first_image;
  RowRange rows;  ///< of the output
  RowRange in;    ///< of the input that their windows read
};

/// How images and rows are partitioned into strips for workers.
struct ChwnPartition {
  int64_t images;   ///< per strip; the last block may have fewer
  int64_t blocks;   ///< of that many images
  int64_t strips;   ///< per block
  int64_t rows;     ///< of the output in a strip, at most
  int64_t in_rows;  ///< of the input that a strip reads, at most
  int64_t workers;

  ChwnPartition(const ConvShape& shape, int64_t images);
  int64_t count() const { return blocks * strips; }
  ChwnStrip strip(const ConvShape& shape, int64_t i) const;
};

/// y [batch, out, row, column] from x [batch, in, row, column] and weights [out, in, row, column],
/// or dx from dy.
class ChwnConvolution {
 public:
  /// Estimated speedup over oneDNN, 0 if not supported: requires NCHW, one group, no dilation, and
  /// for the gradient strides of 1.
  static double estimated_speedup(const ConvShape& shape);
  static double input_grad_speedup(const ConvShape& shape);

  static ChwnConvolution forward(const ConvShape& shape);
  static ChwnConvolution input_grad(const ConvShape& shape);

  size_t scratch_bytes() const;
  /// `epilogue` must not have a residual.
  void run(const float* x, const float* weight, const BoundEpilogue& epilogue, float* y,
           std::byte* scratch) const;

 private:
  ChwnConvolution(const ConvShape& shape, bool transposed);
  void pack(const float* weight, float* packed) const;
  void compute_rows(const ChwnStrip& strip, const float* x, const float* packed,
                    const BoundEpilogue& epilogue, float* sums) const;
  void write(const ChwnStrip& strip, const float* sums, const BoundEpilogue& epilogue,
             float* y) const;

  ConvShape shape_;  ///< of the forward convolution that is computed, also for the gradient
  bool transposed_;  ///< weights are [in, out, row, column], with kernels rotated by 180 degrees
  int64_t vectors_;  ///< of images that are computed at once
  ChwnPartition strips_;
  size_t packed_floats_, x_floats_, y_floats_;
};

/// dw [out, in, row, column] from x and dy.
class ChwnWeightGrad {
 public:
  /// Like ChwnConvolution::estimated_speedup.
  static double estimated_speedup(const ConvShape& shape);
  explicit ChwnWeightGrad(const ConvShape& shape);
  size_t scratch_bytes() const;
  void run(const float* x, const float* dy, float* dw, std::byte* scratch) const;

 private:
  void accumulate_row(const ChwnStrip& strip, int64_t kernel_row, const float* x, const float* dy,
                      float* sums) const;
  void sum_over_batch(const float* sums, float* dw) const;

  ConvShape shape_;
  ChwnPartition strips_;
  size_t x_floats_, dy_floats_, sums_floats_;
};

}  // namespace paddle::cpu
