// Schedules that repeat.

#include "optim/schedule.h"
#include "optim/schedules/common.h"

namespace paddle::optim {

using config::Schema;
using config::Section;
using config::Spec;

// Loshchilov and Hutter, "SGDR", 2017.
ScheduleKind cosine_restarts_schedule() {
  Schema keys;
  keys.add("period", Spec::updates().at_least(1).required().doc("length of the first period"))
      .add("period_factor",
           Spec::integer().at_least(1).fallback("1").doc("factor from period to period"))
      .add("end_factor", Spec::real().at_least(0).fallback("0").doc("lowest rate over base rate"));
  return {
      .name = "cosine_restarts", .keys = keys, .make = [](const Section& s) {
        return Schedule{.factor = [first = s.integer("period"), growth = s.integer("period_factor"),
                                   end = s.real("end_factor")](int64_t step, int64_t) {
          int64_t period = first, since = step;
          while (since >= period) {
            since -= period;
            if (growth == 1) {
              since %= period;
              break;
            }
            period *= growth;
          }
          return anneal(1, end, static_cast<double>(since) / static_cast<double>(period));
        }};
      }};
}

// Smith, "Cyclical Learning Rates for Training Neural Networks", 2017.
ScheduleKind cyclic_schedule() {
  Schema keys;
  keys.add("up", Spec::updates().at_least(1).required().doc("length of the rise"))
      .add("down", Spec::updates().at_least(0).fallback("0").doc(
                       "updates with a decreasing rate; 0: as many as with an increasing one"))
      .add("peak_factor", Spec::real().at_least(0).required().doc("highest rate over base rate"))
      .add("triangular2",
           Spec::boolean().fallback("false").doc("the amplitude halves with each cycle"))
      .add("gamma", Spec::real().at_least(0).fallback("1").doc("factor of the height per update"))
      .renamed("halving", "triangular2");
  return {.name = "cyclic", .keys = keys, .make = [](const Section& s) {
            const int64_t up = s.integer("up"),
                          down = s.integer("down") > 0 ? s.integer("down") : up;
            return Schedule{.factor = [up, down, peak = s.real("peak_factor"),
                                       triangular2 = s.boolean("triangular2"),
                                       gamma = s.real("gamma")](int64_t step, int64_t) {
              const int64_t cycle = step / (up + down), place = step % (up + down);
              const double share =
                  place < up ? static_cast<double>(place) / static_cast<double>(up)
                             : 1 - static_cast<double>(place - up) / static_cast<double>(down);
              const double height = triangular2 ? std::pow(0.5, static_cast<double>(cycle)) : 1;
              return 1 + (peak - 1) * share * height * std::pow(gamma, static_cast<double>(step));
            }};
          }};
}

}  // namespace paddle::optim
