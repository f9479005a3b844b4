#pragma once
// Vector loops of the int16 GEMM (int16_gemm.cc): pairs of int16 products are added to an int32
// accumulator in two instructions on any processor with AVX2, exactly.

#include <array>
#include <cstdint>

namespace paddle::cpu {

/// Integers that represent integer * scale, within bounds, without the zero point.
struct IntegerGrid {
  float scale = 0;    ///< 0 if there are none
  float inverse = 0;  ///< 1 / scale
  float min = 0, max = 0;
};

/// Requantization of accumulators * scale + bias, in this order.
struct RequantizeParams {
  IntegerGrid step;                              ///< grid that values are rounded to first
  float residual_scale = 1, residual_shift = 0;  ///< residual * scale + shift is added
  bool bounded = false;                          ///< clamp to [low, high]
  float low = 0, high = 0;
  IntegerGrid out;  ///< grid of integer results, with its bounds
  int32_t out_zero = 0;
};

/// Accumulators of some rows and columns.
struct AccumulatorTile {
  const int32_t* sums;
  int64_t sums_pitch;
  int64_t rows, columns;
  int64_t pitch;  ///< row stride of results and residuals, in elements
};

/// to[row, column] from the accumulators, scale[column], bias[column] (null for 0) and
/// residual[row, column].
using RequantizeLoop = void (*)(const AccumulatorTile& tile, const RequantizeParams& requantize,
                                const float* scale, const float* bias, const void* residual,
                                void* to);

struct Int16GemmLoops {
  int64_t columns;  ///< of a panel: two vectors of accumulators
  int64_t rows;     ///< maximum rows of a tile
  /// sums[row, column] of a panel = begin[row, column] + the sum over pairs of x[row, pair, 2] *
  /// panel[pair, column, 2].
  void (*tile)(const int16_t* x, int64_t pitch, int64_t rows, const int8_t* panel, int64_t pairs,
               const int32_t* begin, int64_t begin_pitch, int32_t* sums, int64_t sums_pitch);
  /// to[i] = x[i] - zero
  void (*widen_u8)(const uint8_t* x, int64_t n, int16_t zero, int16_t* to);
  void (*widen_i8)(const int8_t* x, int64_t n, int16_t zero, int16_t* to);
  /// By result type; each without a residual, and with one of u8, i8 and f32.
  std::array<RequantizeLoop, 4> to_u8, to_i8, to_f32;
};

const Int16GemmLoops& int16_gemm_loops();

}  // namespace paddle::cpu
