#pragma once
// Blocks of packed weights (ops/generation/packed_format.h) as integers with scales.

#include <cstdint>
#include <string_view>

namespace paddle::cpu {

/// 32 weights of a row, as their format stores them.
struct WeightUnit {
  uint8_t quants[32];
  uint16_t scale, minimum_scale;  ///< float16, of the block
  uint8_t scales[2], minimum;     ///< of a unit within a block of 256 (q6_k: int8, per 16)
};

/// Weight i of a unit is factor[i / 16] * (quants[i] - offset) + minimum.
struct UnitFactors {
  float factor[2], minimum;
};

using UnpackFn = void (*)(const uint8_t* block, int64_t unit, WeightUnit& out);

/// How scales of a panel are stored.
enum class PanelScales : uint8_t {
  kHalf,         ///< float16 per 32
  kHalfMinimum,  ///< and a minimum
  kSuper,        ///< 8 bits per 32 with a minimum, times a float16 per 256
  kSuper16,      ///< int8 per 16 without a minimum, times a float16 per 256
};

struct UnpackedFormat {
  std::string_view name;
  PanelScales scales;
  int most;    ///< the largest quant
  int offset;  ///< of quants
  UnpackFn unpack;
  /// Of a quant in a panel.
  int bits() const { return most <= 15 ? 4 : 8; }
};

UnitFactors unit_factors(PanelScales scales, const WeightUnit& unit);

/// Null for a name that is not in ops/generation/packed_format.h.
const UnpackedFormat* find_unpacked_format(std::string_view name);

}  // namespace paddle::cpu
