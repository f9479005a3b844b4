#pragma once
// Convolutions with few channels over many images, in f32: vectors hold one pixel of several
// images, so that neither channels nor the width of the images need to fill them, and nothing is
// computed for the padding. A worker takes a strip of rows of so many images, brings it to
// [row, column, channel, image] in scratch, and computes there. (Nervana's "CHWN" layout.)

#include <cstddef>

#include "kernels/conv/conv_epilogue.h"
#include "kernels/conv/conv_shape.h"

namespace paddle::cpu {

struct RowRange {
  int64_t first, last;
  int64_t count() const { return last > first ? last - first : 0; }
};

/// What is computed at once.
struct BatchStrip {
  int64_t first_image;
  RowRange rows;  ///< of the output
  RowRange in;    ///< of the input, as far as their windows reach into it
};

/// How images and rows are dealt to workers.
struct BatchStrips {
  int64_t images;   ///< of a strip, of which the batch may have fewer
  int64_t blocks;   ///< of so many images
  int64_t strips;   ///< of each block
  int64_t rows;     ///< of the output in a strip, at most
  int64_t in_rows;  ///< of the input that a strip reads, at most
  int64_t workers;

  BatchStrips(const ConvShape& shape, int64_t images);
  int64_t count() const { return blocks * strips; }
  BatchStrip strip(const ConvShape& shape, int64_t i) const;
};

/// y [batch, out, row, column] from x [batch, in, row, column] and weights [out, in, row, column],
/// or dx from dy.
class BatchConvolution {
 public:
  /// About the time of oneDNN in units of ours, or 0 where nothing is computed here: for images
  /// with channels first, one group, no dilation; for the gradient strides of 1.
  static double saving(const ConvShape& shape);
  static double input_grad_saving(const ConvShape& shape);

  static BatchConvolution forward(const ConvShape& shape);
  static BatchConvolution input_grad(const ConvShape& shape);

  size_t scratch_bytes() const;
  /// `finish` without a residual.
  void run(const float* x, const float* weight, const ConvFinish& finish, float* y,
           std::byte* scratch) const;

 private:
  BatchConvolution(const ConvShape& shape, bool transposed);
  void pack(const float* weight, float* packed) const;
  void sum_rows(const BatchStrip& strip, const float* x, const float* packed,
                const ConvFinish& finish, float* sums) const;
  void write(const BatchStrip& strip, const float* sums, const ConvFinish& finish, float* y) const;

  ConvShape shape_;  ///< of the sum over windows that is computed, also for a gradient
  bool transposed_;  ///< weights are [in, out, row, column], their windows turned by half a circle
  int64_t vectors_;  ///< of images that are computed at once
  BatchStrips strips_;
  size_t packed_floats_, x_floats_, y_floats_;
};

/// dw [out, in, row, column] from x and dy.
class BatchWeightGrad {
 public:
  /// As BatchConvolution::saving.
  static double saving(const ConvShape& shape);
  explicit BatchWeightGrad(const ConvShape& shape);
  size_t scratch_bytes() const;
  void run(const float* x, const float* dy, float* dw, std::byte* scratch) const;

 private:
  void add_row(const BatchStrip& strip, int64_t kernel_row, const float* x, const float* dy,
               float* sums) const;
  void total(const float* sums, float* dw) const;

  ConvShape shape_;
  BatchStrips strips_;
  size_t x_floats_, dy_floats_, sums_floats_;
};

}  // namespace paddle::cpu
