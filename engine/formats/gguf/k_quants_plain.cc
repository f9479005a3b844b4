// K-quants as ggml's reference chooses them without an importance matrix. Equal bytes need its
// order of operations in float32: sums run over the values in order, and products from left to
// right.
#include <algorithm>
#include <array>
#include <cmath>

#include "formats/gguf/block_fit.h"
#include "formats/gguf/k_quant_layout.h"
#include "formats/gguf/k_quants.h"

namespace paddle::formats::gguf {
namespace {

/// The nearest of the levels from `low` to `high`, halves to even.
int nearest_level(float value, int low, int high) {
  return static_cast<int>(
      std::clamp(std::nearbyint(value), static_cast<float>(low), static_cast<float>(high)));
}

/// How scales of parts are tried: their largest level becomes `most` + `first` + step * 0.1.
struct AffineTries {
  int most;
  float first;
  int steps;
};
constexpr AffineTries kTriesOfQ4{15, -1.0F, 20}, kTriesOfQ5{31, -0.5F, 15};

/// scale * level + low ≈ x for a part; the levels are those of the last improvement.
class PlainPart {
 public:
  PlainPart(const float* x, AffineTries tries) : x_(x), tries_(tries) {
    float squares = 0;
    for (int i = 0; i < kAffinePart; ++i) squares += x[i] * x[i];
    const float mean = std::sqrt(squares / kAffinePart);
    for (int i = 0; i < kAffinePart; ++i) weights_[i] = mean + std::abs(x[i]);
  }

  /// The scale and what is subtracted from scale * level.
  Affine fit(uint8_t* levels) {
    float low = x_[0], high = x_[0], sum_w = weights_[0], sum_x = sum_w * x_[0];
    for (int i = 1; i < kAffinePart; ++i) {
      low = std::min(low, x_[i]);
      high = std::max(high, x_[i]);
      sum_w += weights_[i];
      sum_x += weights_[i] * x_[i];
    }
    low = std::min(low, 0.0F);
    if (high == low) {
      std::fill_n(levels, kAffinePart, uint8_t{0});
      return {0, -low};
    }
    const auto most = static_cast<float>(tries_.most);
    float inverse = most / (high - low), scale = 1 / inverse;
    take_levels(inverse, low, levels);
    float best = error(scale, low, levels);
    // Each improvement moves the low end of the range that the next steps try.
    for (int step = 0; step <= tries_.steps; ++step) {
      inverse = (tries_.first + 0.1F * static_cast<float>(step) + most) / (high - low);
      uint8_t tried[kAffinePart];
      take_levels(inverse, low, tried);
      float sum_l = 0, sum_l2 = 0, sum_xl = 0;
      for (int i = 0; i < kAffinePart; ++i) {
        const auto level = static_cast<float>(tried[i]);
        const float w = weights_[i];
        sum_l += w * level;
        sum_l2 += w * level * level;
        sum_xl += w * level * x_[i];
      }
      const float determinant = sum_w * sum_l2 - sum_l * sum_l;
      if (!(determinant > 0)) continue;
      float tried_scale = (sum_w * sum_xl - sum_x * sum_l) / determinant;
      float tried_low = (sum_l2 * sum_x - sum_l * sum_xl) / determinant;
      if (tried_low > 0) {
        tried_low = 0;
        tried_scale = sum_xl / sum_l2;
      }
      const float found = error(tried_scale, tried_low, tried);
      if (!(found < best)) continue;
      std::copy_n(tried, kAffinePart, levels);
      best = found;
      scale = tried_scale;
      low = tried_low;
    }
    return {scale, -low};
  }

 private:
  void take_levels(float inverse, float low, uint8_t* levels) const {
    for (int i = 0; i < kAffinePart; ++i)
      levels[i] = static_cast<uint8_t>(nearest_level(inverse * (x_[i] - low), 0, tries_.most));
  }
  float error(float scale, float low, const uint8_t* levels) const {
    float out = 0;
    for (int i = 0; i < kAffinePart; ++i) {
      const float difference = scale * static_cast<float>(levels[i]) + low - x_[i];
      out += weights_[i] * (difference * difference);
    }
    return out;
  }

  const float* x_;
  AffineTries tries_;
  std::array<float, kAffinePart> weights_;
};

/// Writes the scales and offsets of a block; returns the levels of its values.
KLevels plain_affine_block(const float* values, AffineTries tries, uint8_t* head) {
  const auto x = finite_values<kKBlock>(values);
  KLevels levels;
  Affine fits[kAffineParts];
  float scale = 0, offset = 0;
  for (int p = 0; p < kAffineParts; ++p) {
    const int first = p * kAffinePart;
    fits[p] = PlainPart(x.data() + first, tries).fit(levels.data() + first);
    scale = std::max(scale, fits[p].scale);
    offset = std::max(offset, fits[p].offset);
  }
  constexpr int kMax = 63;
  const float to_scale = scale > 0 ? kMax / scale : 0, to_offset = offset > 0 ? kMax / offset : 0;
  int scales[kAffineParts], offsets[kAffineParts];
  for (int p = 0; p < kAffineParts; ++p) {
    scales[p] = nearest_level(to_scale * fits[p].scale, 0, kMax);
    offsets[p] = nearest_level(to_offset * fits[p].offset, 0, kMax);
  }
  put_six_bits(scales, offsets, head + 4);
  const float d = put_clamped_half(head, scale / kMax),
              m = put_clamped_half(head + 2, offset / kMax);
  // Levels of a part whose scale rounds to 0 stay those of its search.
  for (int p = 0; p < kAffineParts; ++p) {
    const float step = d * static_cast<float>(scales[p]);
    if (step == 0) continue;
    const float below = m * static_cast<float>(offsets[p]);
    for (size_t i = static_cast<size_t>(p) * kAffinePart;
         i < static_cast<size_t>(p + 1) * kAffinePart; ++i)
      levels[i] = static_cast<uint8_t>(nearest_level((x[i] + below) / step, 0, tries.most));
  }
  return levels;
}

constexpr int kMinLevel = -32, kMaxLevel = 31;
constexpr float kMinScale = 1e-15F;

/// scale * (level - 32) ≈ x for a part, with errors weighted by squares of values.
float fit_signed_part(const float* x, uint8_t* levels) {
  float largest = 0;
  for (int i = 0; i < kSignedPart; ++i)
    if (std::abs(x[i]) > std::abs(largest)) largest = x[i];
  if (std::abs(largest) < kMinScale) {
    std::fill_n(levels, kSignedPart, uint8_t{0});
    return 0;
  }
  float scale = 0, best = 0;
  const auto consider = [&](float inverse, bool is_first) {
    float products = 0, squares = 0;
    uint8_t tried[kSignedPart];
    for (int i = 0; i < kSignedPart; ++i) {
      const int level = nearest_level(inverse * x[i], kMinLevel, kMaxLevel);
      tried[i] = static_cast<uint8_t>(level - kMinLevel);
      const float w = x[i] * x[i];
      products += w * x[i] * static_cast<float>(level);
      squares += w * static_cast<float>(level) * static_cast<float>(level);
    }
    if (!is_first && !(squares > 0 && products * products > best * squares)) return;
    scale = squares != 0 ? products / squares : 0;
    best = scale * products;
    std::copy_n(tried, kSignedPart, levels);
  };
  constexpr auto kLow = static_cast<float>(kMinLevel);
  consider(kLow / largest, true);
  constexpr int kTries = 9;
  for (int t = -kTries; t <= kTries; ++t)
    if (t != 0) consider(-(0.1F * static_cast<float>(t) - kLow) / largest, false);
  return scale;
}

}  // namespace

void plain_q4_k(const float* values, uint8_t* block) {
  put_q4_levels(plain_affine_block(values, kTriesOfQ4, block), block);
}

void plain_q5_k(const float* values, uint8_t* block) {
  put_q5_levels(plain_affine_block(values, kTriesOfQ5, block), block);
}

void plain_q6_k(const float* values, uint8_t* block) {
  constexpr int kBytes = 210, kScales = 192, kScale = 208;
  const auto x = finite_values<kKBlock>(values);
  KLevels levels;
  float fits[kSignedParts], largest = 0;
  for (int p = 0; p < kSignedParts; ++p) {
    fits[p] = fit_signed_part(x.data() + p * kSignedPart, levels.data() + p * kSignedPart);
    if (std::abs(fits[p]) > std::abs(largest)) largest = fits[p];
  }
  if (std::abs(largest) < kMinScale) {
    std::fill_n(block, kBytes, uint8_t{0});
    return;
  }
  const float inverse = -128 / largest, d = put_clamped_half(block + kScale, 1 / inverse);
  for (int p = 0; p < kSignedParts; ++p) {
    const int scale = nearest_level(inverse * fits[p], -128, 127);
    block[kScales + p] = static_cast<uint8_t>(static_cast<int8_t>(scale));
    const float step = d * static_cast<float>(scale);
    if (step == 0) continue;
    for (size_t i = static_cast<size_t>(p) * kSignedPart;
         i < static_cast<size_t>(p + 1) * kSignedPart; ++i)
      levels[i] =
          static_cast<uint8_t>(nearest_level(x[i] / step, kMinLevel, kMaxLevel) - kMinLevel);
  }
  put_q6_levels(levels, block);
}

}  // namespace paddle::formats::gguf
