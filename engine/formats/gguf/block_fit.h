#pragma once
// Scales of blocks of values, searched for the least squared error.

#include <algorithm>
#include <array>
#include <cmath>

namespace paddle::formats::gguf {

/// Values that are larger do not fit a block, and smaller ranges have no inverse.
inline constexpr float kMaxValue = 1e7f, kMinRange = 1e-30f;

/// Values that are not finite become 0.
template <size_t kCount>
std::array<float, kCount> finite_values(const float* values) {
  std::array<float, kCount> out;
  for (size_t i = 0; i < kCount; ++i)
    out[i] = std::isfinite(values[i]) ? std::clamp(values[i], -kMaxValue, kMaxValue) : 0;
  return out;
}

/// The level of x + offset in steps of 1 / inverse, from `low` to `high`.
int level_of(float x, float inverse, float offset, int low, int high);

/// x ≈ scale * level - offset, with levels from 0.
struct Affine {
  float scale = 0, offset = 0;
};

/// The squared error of `count` values, each at its nearest level of 0 to `most`.
float affine_error(const float* x, int count, int most, Affine fit);
/// Tries ranges around that of the values; scale and offset follow from the levels by least
/// squares. With `from_zero` the offset is at least 0.
Affine fit_affine(const float* x, int count, int most, bool from_zero);

/// The squared error of `count` values as scale * level, with levels from `low` to `high`.
float signed_error(const float* x, int count, float scale, int low, int high);
/// The value of the largest size becomes about `low`, so that its sign is in the scale.
float fit_signed(const float* x, int count, int low, int high);

}  // namespace paddle::formats::gguf
