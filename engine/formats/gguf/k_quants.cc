#include "formats/gguf/k_quants.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>

#include "formats/gguf/block_fit.h"
#include "tensor/dtype.h"

namespace paddle::formats::gguf {
namespace {

constexpr int kBlock = 256;
constexpr int kAffinePart = 32, kAffineParts = kBlock / kAffinePart;
constexpr int kSignedPart = 16, kSignedParts = kBlock / kSignedPart;

using Values = std::array<float, kBlock>;

/// Writes a value as float16 and returns what that holds. Scales beyond float16 are cut.
float put_clamped_half(uint8_t* to, float value) {
  const float16 half(std::clamp(value, -65504.0f, 65504.0f));
  std::memcpy(to, &half, sizeof half);
  return static_cast<float>(half);
}

/// Eight scales and eight offsets of 6 bits in 12 bytes: the first four of each take the low bits
/// of bytes 0 to 7, whose high bits and the last four bytes hold the others.
void put_six_bits(const int* scales, const int* offsets, uint8_t* to) {
  for (int i = 0; i < 4; ++i) {
    to[i] = static_cast<uint8_t>(scales[i] | (scales[i + 4] >> 4) << 6);
    to[i + 4] = static_cast<uint8_t>(offsets[i] | (offsets[i + 4] >> 4) << 6);
    to[i + 8] = static_cast<uint8_t>((scales[i + 4] & 15) | (offsets[i + 4] & 15) << 4);
  }
}

/// d, the scale of scales; the scale of offsets; their 6-bit levels; and the levels of values.
struct AffineBlock {
  int scales[kAffineParts], offsets[kAffineParts];
  std::array<uint8_t, kBlock> levels;
};

AffineBlock affine_block(const float* values, int most, uint8_t* head) {
  const Values x = finite_values<kBlock>(values);
  Affine fits[kAffineParts];
  float scale = 0, offset = 0;
  for (int p = 0; p < kAffineParts; ++p) {
    fits[p] = fit_affine(x.data() + p * kAffinePart, kAffinePart, most, true);
    scale = std::max(scale, fits[p].scale);
    offset = std::max(offset, fits[p].offset);
  }
  constexpr int kMost = 63;
  const float d = put_clamped_half(head, scale / kMost),
              m = put_clamped_half(head + 2, offset / kMost);
  AffineBlock out;
  for (int p = 0; p < kAffineParts; ++p) {
    const float* const part = x.data() + p * kAffinePart;
    const int near_scale = d > 0 ? level_of(fits[p].scale, 1 / d, 0, 0, kMost) : 0;
    const int near_offset = m > 0 ? level_of(fits[p].offset, 1 / m, 0, 0, kMost) : 0;
    // Rounding one of them can be made up for by the other.
    float best = INFINITY;
    Affine fit;
    for (int s = std::max(0, near_scale - 1); s <= std::min(kMost, near_scale + 1); ++s)
      for (int o = std::max(0, near_offset - 1); o <= std::min(kMost, near_offset + 1); ++o) {
        const Affine tried{d * static_cast<float>(s), m * static_cast<float>(o)};
        const float error = affine_error(part, kAffinePart, most, tried);
        if (!(error < best)) continue;
        best = error;
        fit = tried;
        out.scales[p] = s;
        out.offsets[p] = o;
      }
    if (best == INFINITY) out.scales[p] = out.offsets[p] = 0;
    const float inverse = fit.scale > 0 ? 1 / fit.scale : 0;
    for (int i = 0; i < kAffinePart; ++i)
      out.levels[static_cast<size_t>(p * kAffinePart + i)] =
          static_cast<uint8_t>(level_of(part[i], inverse, fit.offset, 0, most));
  }
  put_six_bits(out.scales, out.offsets, head + 4);
  return out;
}

/// The low four bits of levels: parts 0 and 1 share bytes, then parts 2 and 3, and so on.
void put_low_bits(const std::array<uint8_t, kBlock>& levels, uint8_t* to) {
  for (int pair = 0; pair < kAffineParts / 2; ++pair)
    for (int i = 0; i < kAffinePart; ++i) {
      const auto first = static_cast<size_t>(2 * pair * kAffinePart + i);
      *to++ = static_cast<uint8_t>((levels[first] & 15) | (levels[first + kAffinePart] & 15) << 4);
    }
}

/// scale * level, with levels from -32 to 31.
constexpr int kLowest = -32, kHighest = 31;

}  // namespace

void quantize_q4_k(const float* values, uint8_t* block) {
  const AffineBlock found = affine_block(values, 15, block);
  put_low_bits(found.levels, block + 16);
}

void quantize_q5_k(const float* values, uint8_t* block) {
  const AffineBlock found = affine_block(values, 31, block);
  // The fifth bits: byte i has those of value i of each part.
  uint8_t* const fifth = block + 16;
  std::fill_n(fifth, kAffinePart, uint8_t{0});
  for (int p = 0; p < kAffineParts; ++p)
    for (int i = 0; i < kAffinePart; ++i)
      fifth[i] = static_cast<uint8_t>(
          fifth[i] | (found.levels[static_cast<size_t>(p * kAffinePart + i)] >> 4) << p);
  put_low_bits(found.levels, fifth + kAffinePart);
}

void quantize_q6_k(const float* values, uint8_t* block) {
  uint8_t *const low = block, *const high = block + 128, *const scales = block + 192;
  const Values x = finite_values<kBlock>(values);
  float fits[kSignedParts], largest = 0;
  for (int p = 0; p < kSignedParts; ++p) {
    fits[p] = fit_signed(x.data() + p * kSignedPart, kSignedPart, kLowest, kHighest);
    if (std::abs(fits[p]) > std::abs(largest)) largest = fits[p];
  }
  const float d = put_clamped_half(block + 208, largest / -128);
  std::array<uint8_t, kBlock> levels;
  for (int p = 0; p < kSignedParts; ++p) {
    const float* const part = x.data() + p * kSignedPart;
    const int near = d != 0 ? level_of(fits[p], 1 / d, 0, -128, 127) : 0;
    int best = 0;
    float best_error = INFINITY;
    for (int s = std::max(-128, near - 1); s <= std::min(127, near + 1); ++s)
      if (const float error =
              signed_error(part, kSignedPart, d * static_cast<float>(s), kLowest, kHighest);
          error < best_error) {
        best = s;
        best_error = error;
      }
    scales[p] = static_cast<uint8_t>(static_cast<int8_t>(best));
    const float scale = d * static_cast<float>(best), inverse = scale != 0 ? 1 / scale : 0;
    for (int i = 0; i < kSignedPart; ++i)
      levels[static_cast<size_t>(p * kSignedPart + i)] =
          static_cast<uint8_t>(level_of(part[i], inverse, 0, kLowest, kHighest) - kLowest);
  }
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
