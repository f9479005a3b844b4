// Schedules that reach `end_factor` at the end of the run, or after `steps` updates.

#include "optim/schedule.h"
#include "optim/schedules/common.h"

namespace paddle::optim {

using config::Schema;
using config::Section;
using config::Spec;

ScheduleKind polynomial_schedule() {
  Schema keys;
  keys.add("power", Spec::real().above(0).fallback("1").doc("exponent of the polynomial"));
  return {.name = "polynomial", .keys = keys, .has_length = true, .make = [](const Section& s) {
            return Schedule{.factor = [power = s.real("power"), end = s.real("end_factor")](
                                          int64_t step, int64_t length) {
              return end + (1 - end) * std::pow(1 - progress_of(step, length), power);
            }};
          }};
}

ScheduleKind cosine_schedule() {
  return {.name = "cosine", .has_length = true, .make = [](const Section& s) {
            return Schedule{.factor = [end = s.real("end_factor")](int64_t step, int64_t length) {
              return end +
                     (1 - end) * 0.5 * (1 + std::cos(std::numbers::pi * progress_of(step, length)));
            }};
          }};
}

ScheduleKind linear_schedule() {
  return {.name = "linear", .has_length = true, .make = [](const Section& s) {
            return Schedule{.factor = [end = s.real("end_factor")](int64_t step, int64_t length) {
              return 1 + (end - 1) * progress_of(step, length);
            }};
          }};
}

// Smith and Topin, "Super-Convergence", 2018.
ScheduleKind one_cycle_schedule() {
  Schema keys;
  keys.add("rise", Spec::real().at_least(0).at_most(1).fallback("0.3").doc(
                       "share of the run in which the rate grows to the base rate"))
      .add("start_factor",
           Spec::real().at_least(0).fallback("0.04").doc("initial rate over base rate"));
  return {.name = "one_cycle", .keys = keys, .has_length = true, .make = [](const Section& s) {
            return Schedule{.factor = [rise = s.real("rise"), start = s.real("start_factor"),
                                       end = s.real("end_factor")](int64_t step, int64_t length) {
              const auto updates = static_cast<double>(step);
              const double last = static_cast<double>(length) - 1,
                           top = std::max(rise * static_cast<double>(length) - 1, 0.0);
              if (updates <= top) return anneal(start, 1, top > 0 ? updates / top : 1);
              return anneal(1, end, std::min(1.0, (updates - top) / std::max(last - top, 1.0)));
            }};
          }};
}

ScheduleKind wsd_schedule() {
  Schema keys;
  keys.add("decay", Spec::updates().at_least(0).fallback("0").doc(
                        "length of the decay at the end; 0: a tenth of the whole"))
      .add("shape", Spec::word({"linear", "cosine", "sqrt"})
                        .fallback("linear")
                        .doc("of the decay; sqrt: 1 - sqrt(x)"));
  return {.name = "wsd", .keys = keys, .has_length = true, .make = [](const Section& s) {
            return Schedule{.factor = [stated = s.integer("decay"), shape = s.text("shape"),
                                       end = s.real("end_factor")](int64_t step, int64_t length) {
              const int64_t decay =
                  std::min(length, stated > 0 ? stated : std::max<int64_t>(1, (length + 5) / 10));
              if (step < length - decay) return 1.0;
              const double share = std::min(
                  1.0, static_cast<double>(step - (length - decay)) / static_cast<double>(decay));
              if (shape == "cosine") return anneal(1, end, share);
              return 1 + (end - 1) * (shape == "sqrt" ? std::sqrt(share) : share);
            }};
          }};
}

}  // namespace paddle::optim
