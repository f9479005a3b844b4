#include "formats/gguf/k_quants.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "formats/gguf/block_fit.h"
#include "formats/gguf/k_quant_layout.h"

namespace paddle::formats::gguf {
namespace {

using Values = std::array<float, kKBlock>;

/// Writes d, the scale of scales, the scale of offsets, and their 6-bit levels; returns the levels
/// of values.
KLevels affine_block(const float* values, int most, uint8_t* head) {
  const Values x = finite_values<kKBlock>(values);
  Affine fits[kAffineParts];
  float scale = 0, offset = 0;
  for (int p = 0; p < kAffineParts; ++p) {
    fits[p] = fit_affine(x.data() + p * kAffinePart, kAffinePart, most, true);
    scale = std::max(scale, fits[p].scale);
    offset = std::max(offset, fits[p].offset);
  }
  constexpr int kMax = 63;
  const float d = put_clamped_half(head, scale / kMax),
              m = put_clamped_half(head + 2, offset / kMax);
  int scales[kAffineParts], offsets[kAffineParts];
  KLevels out;
  for (int p = 0; p < kAffineParts; ++p) {
    const float* const part = x.data() + p * kAffinePart;
    const int near_scale = d > 0 ? level_of(fits[p].scale, 1 / d, 0, 0, kMax) : 0;
    const int near_offset = m > 0 ? level_of(fits[p].offset, 1 / m, 0, 0, kMax) : 0;
    // Rounding one of them can be made up for by the other.
    float best = INFINITY;
    Affine fit;
    for (int s = std::max(0, near_scale - 1); s <= std::min(kMax, near_scale + 1); ++s)
      for (int o = std::max(0, near_offset - 1); o <= std::min(kMax, near_offset + 1); ++o) {
        const Affine tried{d * static_cast<float>(s), m * static_cast<float>(o)};
        const float error = affine_error(part, kAffinePart, most, tried);
        if (!(error < best)) continue;
        best = error;
        fit = tried;
        scales[p] = s;
        offsets[p] = o;
      }
    if (best == INFINITY) scales[p] = offsets[p] = 0;
    const float inverse = fit.scale > 0 ? 1 / fit.scale : 0;
    for (int i = 0; i < kAffinePart; ++i)
      out[static_cast<size_t>(p * kAffinePart + i)] =
          static_cast<uint8_t>(level_of(part[i], inverse, fit.offset, 0, most));
  }
  put_six_bits(scales, offsets, head + 4);
  return out;
}

/// scale * level, with levels from -32 to 31.
constexpr int kMin = -32, kMax = 31;

}  // namespace

void searched_q4_k(const float* values, uint8_t* block) {
  put_q4_levels(affine_block(values, 15, block), block);
}

void searched_q5_k(const float* values, uint8_t* block) {
  put_q5_levels(affine_block(values, 31, block), block);
}

void searched_q6_k(const float* values, uint8_t* block) {
  uint8_t* const scales = block + 192;
  const Values x = finite_values<kKBlock>(values);
  float fits[kSignedParts], largest = 0;
  for (int p = 0; p < kSignedParts; ++p) {
    fits[p] = fit_signed(x.data() + p * kSignedPart, kSignedPart, kMin, kMax);
    if (std::abs(fits[p]) > std::abs(largest)) largest = fits[p];
  }
  const float d = put_clamped_half(block + 208, largest / -128);
  KLevels levels;
  for (int p = 0; p < kSignedParts; ++p) {
    const float* const part = x.data() + p * kSignedPart;
    const int near = d != 0 ? level_of(fits[p], 1 / d, 0, -128, 127) : 0;
    int best = 0;
    float best_error = INFINITY;
    for (int s = std::max(-128, near - 1); s <= std::min(127, near + 1); ++s)
      if (const float error =
              signed_error(part, kSignedPart, d * static_cast<float>(s), kMin, kMax);
          error < best_error) {
        best = s;
        best_error = error;
      }
    scales[p] = static_cast<uint8_t>(static_cast<int8_t>(best));
    const float scale = d * static_cast<float>(best), inverse = scale != 0 ? 1 / scale : 0;
    for (int i = 0; i < kSignedPart; ++i)
      levels[static_cast<size_t>(p * kSignedPart + i)] =
          static_cast<uint8_t>(level_of(part[i], inverse, 0, kMin, kMax) - kMin);
  }
  put_q6_levels(levels, block);
}

}  // namespace paddle::formats::gguf
