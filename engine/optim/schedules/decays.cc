// Schedules that fall by a formula of the number of the update, without regard to the length of the
// run.

#include <algorithm>
#include <cmath>

#include "optim/schedule.h"

namespace paddle::optim {

using config::Schema;
using config::Section;
using config::Spec;

ScheduleKind constant_schedule() {
  return {.name = "constant", .make = [](const Section&) {
            return Schedule{.factor = [](int64_t, int64_t) { return 1.0; }};
          }};
}

ScheduleKind exponential_schedule() {
  Schema keys;
  keys.add("gamma", Spec::real().at_least(0).required().doc("factor of each change"));
  return {.name = "exponential", .keys = keys, .make = [](const Section& s) {
            return Schedule{.factor = [gamma = s.real("gamma")](int64_t step, int64_t) {
              return std::pow(gamma, static_cast<double>(step));
            }};
          }};
}

ScheduleKind natural_exp_schedule() {
  Schema keys;
  keys.add("gamma", Spec::real().at_least(0).required().doc("rate of exp(-gamma * update)"));
  return {.name = "natural_exp", .keys = keys, .make = [](const Section& s) {
            return Schedule{.factor = [gamma = s.real("gamma")](int64_t step, int64_t) {
              return std::exp(-gamma * static_cast<double>(step));
            }};
          }};
}

ScheduleKind inverse_time_schedule() {
  Schema keys;
  keys.add("gamma", Spec::real().at_least(0).required().doc("rate of 1 / (1 + gamma * update)"));
  return {.name = "inverse_time", .keys = keys, .make = [](const Section& s) {
            return Schedule{.factor = [gamma = s.real("gamma")](int64_t step, int64_t) {
              return 1 / (1 + gamma * static_cast<double>(step));
            }};
          }};
}

ScheduleKind inverse_sqrt_schedule() {
  Schema keys;
  keys.add("timescale", Spec::updates().at_least(0).fallback("0").doc(
                            "length in which the rate falls to 0.7 of it; 0: warmup, or 10000"));
  return {.name = "inverse_sqrt", .keys = keys, .make = [](const Section& s) {
            constexpr int64_t kDefaultTimescale = 10000;
            const int64_t timescale = s.integer("timescale"), warmup = s.integer("warmup");
            const auto scale = static_cast<double>(timescale > 0 ? timescale
                                                   : warmup > 0  ? warmup
                                                                 : kDefaultTimescale);
            return Schedule{.factor = [scale](int64_t step, int64_t) {
              return std::sqrt(scale / (static_cast<double>(step) + scale));
            }};
          }};
}

// Vaswani et al., "Attention Is All You Need", 2017.
ScheduleKind noam_schedule() {
  Schema keys;
  keys.add("width", Spec::integer().at_least(1).required().doc("size of the model"))
      .add("warmup_steps", Spec::updates().at_least(1).required().doc("length of the rise"))
      .renamed("rising", "warmup_steps");
  return {.name = "noam", .keys = keys, .make = [](const Section& s) {
            const auto width = static_cast<double>(s.integer("width")),
                       warmup = static_cast<double>(s.integer("warmup_steps"));
            return Schedule{.factor = [width, warmup](int64_t step, int64_t) {
              const double number = static_cast<double>(step) + 1;
              return std::min(std::pow(number, -0.5), number * std::pow(warmup, -1.5)) /
                     std::sqrt(width);
            }};
          }};
}

}  // namespace paddle::optim
