#pragma once
// Vector loops of convolutions whose vectors hold pixels of a row (row_conv.h), in f32.

#include <cstdint>

namespace paddle::cpu {

/// Rows of the output of a convolution with strides of 1 along the rows.
struct DirectRows {
  const float* x;          ///< [channel, row, column] with the padding; at the first window
  int64_t channel_stride;  ///< floats from channel to channel
  int64_t row_stride;
  const float* weight;  ///< [channel, row, column, output]
  int64_t channels, kernel_height, kernel_width;
  int64_t stride;           ///< rows from window to window
  int64_t rows, out_width;  ///< of the output
  int64_t outputs;
};

struct DirectLoops {
  int64_t lanes;    ///< pixels of a vector; so many floats are read behind the last row, and left
  int64_t outputs;  ///< channels that are computed at once, at most
  /// y[output, row, column] = the sum over the window plus bias[output] (may be null), not below
  /// `least`; `pitch` floats from output to output.
  void (*rows)(const DirectRows& rows, const float* bias, float clamp_min, float* y, int64_t pitch);
};

const DirectLoops& direct_loops();

}  // namespace paddle::cpu
