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
  }
  return 1;
}

}  // namespace paddle::optim
