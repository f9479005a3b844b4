#pragma once
// Curves that several schedules have.

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <numbers>

namespace paddle::optim {

/// From one value to another along half a wave, as `share` goes from 0 to 1.
inline double anneal(double from, double to, double share) {
  return to + (from - to) * 0.5 * (1 + std::cos(std::numbers::pi * share));
}

/// The share of a schedule that is over, at most 1.
inline double progress_of(int64_t step, int64_t length) {
  return std::min(1.0, static_cast<double>(step) / static_cast<double>(length));
}

}  // namespace paddle::optim
