#pragma once
// Convolutions with few channels over many images, in f32: vectors hold one pixel of several
// images, so that neither channels nor the width of the images need to fill them, and nothing is
// computed for the padding. A worker takes a strip of rows of so many images, brings it to
// [row, column, channel, image] in scratch, and computes there. (Nervana's "CHWN" layout.)

#include <cstddef>

#include "kernels/conv/conv_shape.h"
#include "kernels/epilogue.h"

namespace paddle::cpu {

struct RowRange {
  int64_t first, last;
  int64_t count() const { return last > first ? last - first : 0; }
};

/// What is computed at once.
struct ChwnStrip {
  int64_t first_image;
  RowRange rows;  ///< of the output
  RowRange in;    ///< of the input, as far as their windows reach into it
};

/// How images and rows are dealt to workers.
struct ChwnPartition {
  int64_t images;   ///< of a strip, of which the batch may have fewer
  int64_t blocks;   ///< of so many images
  int64_t strips;   ///< of each block
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
  /// About the time of oneDNN in units of ours, or 0 where nothing is computed here: for images
  /// with channels first, one group, no dilation; for the gradient strides of 1.
  static double estimated_speedup(const ConvShape& shape);
  static double input_grad_speedup(const ConvShape& shape);

  static ChwnConvolution forward(const ConvShape& shape);
  static ChwnConvolution input_grad(const ConvShape& shape);

  size_t scratch_bytes() const;
  /// `finish` without a residual.
  void run(const float* x, const float* weight, const BoundEpilogue& epilogue, float* y,
           std::byte* scratch) const;

 private:
  ChwnConvolution(const ConvShape& shape, bool transposed);
  void pack(const float* weight, float* packed) const;
  void compute_rows(const ChwnStrip& strip, const float* x, const float* packed,
                    const BoundEpilogue& epilogue, float* sums) const;
  void write(const ChwnStrip& strip, const float* sums, const BoundEpilogue& epilogue,
             float* y) const;

  ConvShape shape_;  ///< of the sum over windows that is computed, also for a gradient
  bool transposed_;  ///< weights are [in, out, row, column], their windows turned by half a circle
  int64_t vectors_;  ///< of images that are computed at once
  ChwnPartition strips_;
  size_t packed_floats_, x_floats_, y_floats_;
};

/// dw [out, in, row, column] from x and dy.
class ChwnWeightGrad {
 public:
  /// As ChwnConvolution::saving.
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
