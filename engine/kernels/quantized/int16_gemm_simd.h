#pragma once
// Vector loops of convolutions and products on bytes (quantized.cc), which are multiplied as
// integers of 16 bits in pairs: a pair of products and their sum with one of 32 bits takes two
// instructions on every processor with AVX2, and is exact.

#include <array>
#include <cstdint>

namespace paddle::cpu {

/// Integers that stand for integer * scale, between two of them; what a zero point adds is left
/// out.
struct IntegerGrid {
  float scale = 0;    ///< 0 where there are none
  float inverse = 0;  ///< of the scale
  float min = 0, max = 0;
};

/// What is done to sums times their column's scale plus its bias, in this order.
struct RequantizeParams {
  IntegerGrid step;                              ///< that they are rounded to
  float residual_scale = 1, residual_shift = 0;  ///< residual * scale + shift is added
  bool bounded = false;                          ///< by low and high
  float low = 0, high = 0;
  IntegerGrid out;  ///< of results of bytes, with their bounds
  int32_t out_zero = 0;
};

/// Sums of some rows and columns.
struct AccumulatorTile {
  const int32_t* sums;
  int64_t sums_pitch;
  int64_t rows, columns;
  int64_t pitch;  ///< of results and residuals, in their items
};

/// to[row, column] from the tile's sums, scale[column], bias[column] (null for 0) and
/// residual[row, column].
using RequantizeLoop = void (*)(const AccumulatorTile& tile, const RequantizeParams& requantize,
                                const float* scale, const float* bias, const void* residual,
                                void* to);

struct Int16GemmLoops {
  int64_t columns;  ///< of a panel: of two vectors of sums
  int64_t rows;     ///< that are computed at once, at most
  /// sums[row, column] of a panel = begin[row, column] + the sum over pairs of x[row, pair, 2] *
  /// panel[pair, column, 2].
  void (*tile)(const int16_t* x, int64_t pitch, int64_t rows, const int8_t* panel, int64_t pairs,
               const int32_t* begin, int64_t begin_pitch, int32_t* sums, int64_t sums_pitch);
  /// to[i] = x[i] - zero
  void (*widen_u8)(const uint8_t* x, int64_t n, int16_t zero, int16_t* to);
  void (*widen_i8)(const int8_t* x, int64_t n, int16_t zero, int16_t* to);
  /// By results; in each without a residual, and with one of u8, i8 and f32.
  std::array<RequantizeLoop, 4> to_u8, to_i8, to_f32;
};

const Int16GemmLoops& int16_gemm_loops();

}  // namespace paddle::cpu
