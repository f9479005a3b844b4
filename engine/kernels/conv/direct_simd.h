#pragma once
// Vector loops of direct convolution (direct.h), in f32.

#include <cstdint>

namespace paddle::cpu {

/// Output rows of a convolution with a column stride of 1.
struct DirectRows {
  const float* x;          ///< [channel, row, column] with padding, at the first window
  int64_t channel_stride;  ///< floats between channels
  int64_t row_stride;
  const float* weight;  ///< [channel, row, column, output]
  int64_t channels, kernel_height, kernel_width;
  int64_t stride;           ///< rows between windows
  int64_t rows, out_width;  ///< of the output
  int64_t outputs;
};

struct DirectLoops {
  int64_t lanes;    ///< pixels per vector; that many floats are read past the last row, and ignored
  int64_t outputs;  ///< maximum channels computed at once
  /// y[output, row, column] = max(sum over the window + bias[output], clamp_min); `bias` may be
  /// null. There are `pitch` floats between outputs.
  void (*rows)(const DirectRows& rows, const float* bias, float clamp_min, float* y, int64_t pitch);
};

const DirectLoops& direct_loops();

}  // namespace paddle::cpu
