#include "formats/gguf/block_fit.h"

#include <algorithm>
#include <cmath>

namespace paddle::formats::gguf {

int level_of(float x, float inverse, float offset, int low, int high) {
  return static_cast<int>(std::clamp(std::nearbyint((x + offset) * inverse),
                                     static_cast<float>(low), static_cast<float>(high)));
}

float affine_error(const float* x, int count, int most, Affine fit) {
  const float inverse = fit.scale > 0 ? 1 / fit.scale : 0;
  float error = 0;
  for (int i = 0; i < count; ++i) {
    const auto level = static_cast<float>(level_of(x[i], inverse, fit.offset, 0, most));
    const float difference = fit.scale * level - fit.offset - x[i];
    error += difference * difference;
  }
  return error;
}

Affine fit_affine(const float* x, int count, int most, bool from_zero) {
  const auto [least, largest] = std::minmax_element(x, x + count);
  const float low = from_zero ? std::min(*least, 0.0f) : *least, high = *largest;
  if (!(high - low > kMinRange)) return {0, -low};
  Affine best{(high - low) / static_cast<float>(most), -low};
  float best_error = affine_error(x, count, most, best);
  constexpr int kTries = 20;
  for (int t = 0; t <= kTries; ++t) {
    const float inverse =
        (static_cast<float>(most) - 1 + 0.1f * static_cast<float>(t)) / (high - low);
    float levels = 0, squares = 0, values = 0, products = 0;
    for (int i = 0; i < count; ++i) {
      const auto level = static_cast<float>(level_of(x[i], inverse, -low, 0, most));
      levels += level;
      squares += level * level;
      values += x[i];
      products += level * x[i];
    }
    const auto n = static_cast<float>(count);
    const float determinant = n * squares - levels * levels;
    if (!(determinant > 0)) continue;
    Affine fit{(n * products - levels * values) / determinant,
               (levels * products - squares * values) / determinant};
    if (from_zero && fit.offset < 0) fit = {products / squares, 0};
    if (!(fit.scale > 0)) continue;
    if (const float error = affine_error(x, count, most, fit); error < best_error) {
      best = fit;
      best_error = error;
    }
  }
  return best;
}

float signed_error(const float* x, int count, float scale, int low, int high) {
  const float inverse = scale != 0 ? 1 / scale : 0;
  float error = 0;
  for (int i = 0; i < count; ++i) {
    const float difference =
        scale * static_cast<float>(level_of(x[i], inverse, 0, low, high)) - x[i];
    error += difference * difference;
  }
  return error;
}

float fit_signed(const float* x, int count, int low, int high) {
  float largest = 0;
  for (int i = 0; i < count; ++i)
    if (std::abs(x[i]) > std::abs(largest)) largest = x[i];
  if (!(std::abs(largest) > kMinRange)) return 0;
  float best = largest / static_cast<float>(low),
        best_error = signed_error(x, count, best, low, high);
  constexpr int kTries = 9;
  for (int t = -kTries; t <= kTries; ++t) {
    const float inverse = (static_cast<float>(low) + 0.1f * static_cast<float>(t)) / largest;
    float squares = 0, products = 0;
    for (int i = 0; i < count; ++i) {
      const auto level = static_cast<float>(level_of(x[i], inverse, 0, low, high));
      squares += level * level;
      products += level * x[i];
    }
    if (!(squares > 0)) continue;
    const float scale = products / squares;
    if (const float error = signed_error(x, count, scale, low, high); error < best_error) {
      best = scale;
      best_error = error;
    }
  }
  return best;
}

}  // namespace paddle::formats::gguf
