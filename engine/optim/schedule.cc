#include "optim/schedule.h"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace paddle::optim {

double schedule_factor(const ScheduleOptions& o, int64_t step, int64_t total) {
  if (step < o.warmup)
    return o.warmup_start +
           (1 - o.warmup_start) * static_cast<double>(step + 1) / static_cast<double>(o.warmup);
  const int64_t at = step - o.warmup;
  const int64_t length = std::max<int64_t>(1, o.steps > 0 ? o.steps : total - o.warmup);
  const double progress = std::min(1.0, static_cast<double>(at) / static_cast<double>(length));
  const auto updates = static_cast<double>(at);
  const auto anneal = [](double from, double to, double part) {
    return to + (from - to) * 0.5 * (1 + std::cos(std::numbers::pi * part));
  };
  switch (o.kind) {
    case ScheduleKind::kConstant:
      return 1;
    case ScheduleKind::kStep:
      return std::pow(o.gamma, static_cast<double>(at / std::max<int64_t>(1, o.step_size)));
    case ScheduleKind::kMultiStep: {
      const auto passed = std::count_if(o.milestones.begin(), o.milestones.end(),
                                        [&](int64_t m) { return at >= m; });
      return std::pow(o.gamma, static_cast<double>(passed));
    }
    case ScheduleKind::kExponential:
      return std::pow(o.gamma, static_cast<double>(at));
    case ScheduleKind::kPolynomial:
      return o.end_factor + (1 - o.end_factor) * std::pow(1 - progress, o.power);
    case ScheduleKind::kLinear:
      return 1 + (o.end_factor - 1) * progress;
    case ScheduleKind::kCosine:
      return o.end_factor + (1 - o.end_factor) * 0.5 * (1 + std::cos(std::numbers::pi * progress));
    case ScheduleKind::kCosineRestarts: {
      int64_t period = std::max<int64_t>(1, o.period), since = at;
      while (since >= period) {
        since -= period;
        if (o.period_factor == 1) {
          since %= period;
          break;
        }
        period *= o.period_factor;
      }
      return anneal(1, o.end_factor, static_cast<double>(since) / static_cast<double>(period));
    }
    case ScheduleKind::kOneCycle: {
      const double last = static_cast<double>(length) - 1,
                   top = std::max(o.rise * static_cast<double>(length) - 1, 0.0);
      if (updates <= top) return anneal(o.start_factor, 1, top > 0 ? updates / top : 1);
      return anneal(1, o.end_factor, std::min(1.0, (updates - top) / std::max(last - top, 1.0)));
    }
    case ScheduleKind::kCyclic: {
      const int64_t up = std::max<int64_t>(1, o.up), down = o.down > 0 ? o.down : up;
      const int64_t cycle = at / (up + down), place = at % (up + down);
      const double part = place < up
                              ? static_cast<double>(place) / static_cast<double>(up)
                              : 1 - static_cast<double>(place - up) / static_cast<double>(down);
      const double height = o.halving ? std::pow(0.5, static_cast<double>(cycle)) : 1;
      return 1 + (o.peak_factor - 1) * part * height * std::pow(o.gamma, updates);
    }
    case ScheduleKind::kNoam: {
      const double number = updates + 1;
      return std::min(std::pow(number, -0.5),
                      number * std::pow(static_cast<double>(o.rising), -1.5)) /
             std::sqrt(static_cast<double>(o.width));
    }
    case ScheduleKind::kNaturalExponential:
      return std::exp(-o.gamma * updates);
    case ScheduleKind::kInverseTime:
      return 1 / (1 + o.gamma * updates);
    case ScheduleKind::kPiecewise: {
      const auto passed = std::count_if(o.milestones.begin(), o.milestones.end(),
                                        [&](int64_t m) { return at >= m; });
      return o.factors[static_cast<size_t>(passed)];
    }
    case ScheduleKind::kInverseSqrt: {
      constexpr int64_t kDefaultTimescale = 10000;
      const auto scale = static_cast<double>(o.timescale > 0 ? o.timescale
                                             : o.warmup > 0  ? o.warmup
                                                             : kDefaultTimescale);
      return std::sqrt(scale / (updates + scale));
    }
    case ScheduleKind::kWarmupStableDecay: {
      const int64_t decay =
          std::min(length, o.decay > 0 ? o.decay : std::max<int64_t>(1, (length + 5) / 10));
      if (at < length - decay) return 1;
      const double part =
          std::min(1.0, static_cast<double>(at - (length - decay)) / static_cast<double>(decay));
      switch (o.shape) {
        case ScheduleOptions::Shape::kLinear:
          return 1 + (o.end_factor - 1) * part;
        case ScheduleOptions::Shape::kCosine:
          return anneal(1, o.end_factor, part);
        case ScheduleOptions::Shape::kSqrt:
          return 1 + (o.end_factor - 1) * std::sqrt(part);
      }
      return 1;
    }
    case ScheduleKind::kReduceOnPlateau:
      return 1;
  }
  return 1;
}

bool update_plateau(const PlateauOptions& o, double value, PlateauState& state) {
  const auto is_better = [&](double best) {
    const double margin = o.is_relative ? std::abs(best) * o.threshold : o.threshold;
    return o.larger_is_better ? value > best + margin : value < best - margin;
  };
  if (std::isfinite(value) && (!state.best || is_better(*state.best))) {
    state.best = value;
    state.waited = 0;
  } else {
    ++state.waited;
  }
  if (state.cooldown > 0) {
    --state.cooldown;
    state.waited = 0;
  }
  if (state.waited <= o.patience) return false;
  state.waited = 0;
  state.cooldown = o.cooldown;
  const double before = state.factor;
  state.factor = std::max(state.factor * o.factor, std::min(before, o.smallest_factor));
  return state.factor < before;
}

}  // namespace paddle::optim
