#pragma once
// Vector loops of convolutions in CHWN layout (chwn.h), in f32: [row, column, channel, image], with
// a whole number of vectors of images.

#include <cstdint>

namespace paddle::cpu {

/// One output row.
struct ChwnRow {
  int64_t vectors;      ///< of images, 1 or 2
  const float* x;       ///< column 0 of the first input row that the windows read
  int64_t row_stride;   ///< floats between rows of x
  int64_t rows;         ///< kernel rows that read the image; may be 0
  const float* weight;  ///< of the first of these kernel rows: [row, column, channel, output]
  int64_t width, channels, kernel_width, stride, left;
  int64_t out_width, outputs;
};

/// A tile of the weight gradient: sums the products of `outputs` channels of dy with `taps` floats
/// of x over `rows` × `columns` pixels. Strides are in floats.
struct ChwnWeightTile {
  const float *dy, *x;
  int64_t rows, columns;
  int64_t dy_row, dy_column, x_row, x_column;
  float* sums;  ///< [outputs, taps, image], `sums_stride` floats between outputs
  int64_t sums_stride;
};

struct ChwnLoops {
  int64_t lanes;             ///< images per vector
  int64_t row_outputs;       ///< maximum output channels of `row`
  int64_t products_outputs;  ///< maximum channels of dy in `products`
  int64_t products_taps;     ///< maximum floats of x in `products`

  /// to[pixel * pitch + image] = from[image * stride + pixel] for the first `images` of `lanes`
  /// images; the others are set to 0.
  void (*gather)(const float* from, int64_t stride, int64_t images, int64_t pixels, float* to,
                 int64_t pitch);
  /// to[image * stride + pixel] = from[pixel * pitch + image] for the first `images` images.
  void (*scatter)(const float* from, int64_t pitch, int64_t images, int64_t pixels, float* to,
                  int64_t stride);
  /// y[output, column, image] = max(sum over the window + bias[output], clamp_min); `bias` may be
  /// null. There are `pitch` floats between outputs.
  void (*row)(const ChwnRow& row, const float* bias, float clamp_min, float* y, int64_t pitch);
  /// Accumulates into the sums.
  void (*products)(const ChwnWeightTile& part, int64_t outputs, int64_t taps);
  /// out[i * out_stride] = the sum over images of the i-th vector of all `parts` arrays, which are
  /// `part_stride` floats apart.
  void (*sum_over_batch)(const float* sums, int64_t parts, int64_t part_stride, int64_t count,
                         float* out, int64_t out_stride);
};

const ChwnLoops& chwn_loops();

}  // namespace paddle::cpu
