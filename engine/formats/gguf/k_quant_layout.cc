#include "formats/gguf/k_quant_layout.h"

#include <algorithm>
#include <cstring>

#include "tensor/dtype.h"

namespace paddle::formats::gguf {
namespace {

/// The low four bits of levels: parts 0 and 1 share bytes, then parts 2 and 3, and so on.
void put_low_bits(const KLevels& levels, uint8_t* to) {
  for (int pair = 0; pair < kAffineParts / 2; ++pair)
    for (int i = 0; i < kAffinePart; ++i) {
      const auto first = static_cast<size_t>(2 * pair * kAffinePart + i);
      *to++ = static_cast<uint8_t>((levels[first] & 15) | (levels[first + kAffinePart] & 15) << 4);
    }
}

}  // namespace

float put_clamped_half(uint8_t* to, float value) {
  const float16 half(std::clamp(value, -65504.0f, 65504.0f));
  std::memcpy(to, &half, sizeof half);
  return static_cast<float>(half);
}

// The first four of each take the low bits of bytes 0 to 7, whose high bits and the last four bytes
// hold the others.
void put_six_bits(const int* scales, const int* offsets, uint8_t* to) {
  for (int i = 0; i < 4; ++i) {
    to[i] = static_cast<uint8_t>(scales[i] | (scales[i + 4] >> 4) << 6);
    to[i + 4] = static_cast<uint8_t>(offsets[i] | (offsets[i + 4] >> 4) << 6);
    to[i + 8] = static_cast<uint8_t>((scales[i + 4] & 15) | (offsets[i + 4] & 15) << 4);
  }
}

void put_q4_levels(const KLevels& levels, uint8_t* block) { put_low_bits(levels, block + 16); }

void put_q5_levels(const KLevels& levels, uint8_t* block) {
  // The fifth bits: byte i has those of value i of each part.
  uint8_t* const fifth = block + 16;
  std::fill_n(fifth, kAffinePart, uint8_t{0});
  for (int p = 0; p < kAffineParts; ++p)
    for (int i = 0; i < kAffinePart; ++i)
      fifth[i] = static_cast<uint8_t>(fifth[i] |
                                      (levels[static_cast<size_t>(p * kAffinePart + i)] >> 4) << p);
  put_low_bits(levels, fifth + kAffinePart);
}

void put_q6_levels(const KLevels& levels, uint8_t* block) {
  uint8_t *const low = block, *const high = block + 128;
  // Each half of 128 values: four bits of the quarters 0 and 2, and of 1 and 3, share bytes; the
  // two bits above them of all four quarters share one.
  constexpr int kQuarter = 32;
  for (int half = 0; half < 2; ++half)
    for (int i = 0; i < kQuarter; ++i) {
      const auto level = [&](int quarter) {
        return levels[static_cast<size_t>(half * 128 + quarter * kQuarter + i)];
      };
      low[half * 64 + i] = static_cast<uint8_t>((level(0) & 15) | (level(2) & 15) << 4);
      low[half * 64 + kQuarter + i] = static_cast<uint8_t>((level(1) & 15) | (level(3) & 15) << 4);
      high[half * kQuarter + i] = static_cast<uint8_t>(level(0) >> 4 | (level(1) >> 4) << 2 |
                                                       (level(2) >> 4) << 4 | (level(3) >> 4) << 6);
    }
}

}  // namespace paddle::formats::gguf
