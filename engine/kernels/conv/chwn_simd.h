#pragma once
// Vector loops of convolutions whose vectors hold one pixel of several images (batch_conv.h), in
// f32. Images lie there as [row, column, channel, image], with a whole number of vectors of images.

#include <cstdint>

namespace paddle::cpu {

/// One row of the output of a convolution: where its windows lie in `x`.
struct ChwnRow {
  int64_t vectors;      ///< of images, 1 or 2
  const float* x;       ///< column 0 of the first row of the windows that the image has
  int64_t row_stride;   ///< floats from row to row of x
  int64_t rows;         ///< of the windows that the image has; may be 0
  const float* weight;  ///< of the first of these rows: [row, column, channel, output]
  int64_t width, channels, kernel_width, stride, left;
  int64_t out_width, outputs;
};

/// A part of the gradient of the weights: the sum over `rows` × `columns` pixels of the products of
/// all `outputs` channels of dy and `taps` floats of x, with strides in floats.
struct ChwnWeightTile {
  const float *dy, *x;
  int64_t rows, columns;
  int64_t dy_row, dy_column, x_row, x_column;
  float* sums;  ///< [outputs, taps, image], `sums_stride` floats from output to output
  int64_t sums_stride;
};

struct ChwnLoops {
  int64_t lanes;             ///< images of a vector
  int64_t row_outputs;       ///< channels that `row` gives, at most
  int64_t products_outputs;  ///< channels of dy that `products` takes, at most
  int64_t products_taps;     ///< floats of x that `products` takes, at most

  /// to[pixel * pitch + image] = from[image * stride + pixel] for `lanes` images, of which the
  /// first `images` are there; the others become 0.
  void (*gather)(const float* from, int64_t stride, int64_t images, int64_t pixels, float* to,
                 int64_t pitch);
  /// to[image * stride + pixel] = from[pixel * pitch + image] for the first `images` images.
  void (*scatter)(const float* from, int64_t pitch, int64_t images, int64_t pixels, float* to,
                  int64_t stride);
  /// y[output, column, image] = the sum over the window plus bias[output] (may be null), not below
  /// `least`; `pitch` floats from output to output.
  void (*row)(const ChwnRow& row, const float* bias, float clamp_min, float* y, int64_t pitch);
  /// Adds to the sums.
  void (*products)(const ChwnWeightTile& part, int64_t outputs, int64_t taps);
  /// out[i * out_stride] = the sum over the images of the i-th vector of `parts` arrays, which lie
  /// `part_stride` floats apart.
  void (*sum_over_batch)(const float* sums, int64_t parts, int64_t part_stride, int64_t count,
                         float* out, int64_t out_stride);
};

const ChwnLoops& chwn_loops();

}  // namespace paddle::cpu
