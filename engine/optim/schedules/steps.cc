// Schedules that change at certain updates and are constant between them.

#include <algorithm>
#include <cmath>

#include "optim/schedule.h"

namespace paddle::optim {

using config::Schema;
using config::Section;
using config::Spec;

namespace {

Spec gamma_key() { return Spec::real().at_least(0).fallback("0.1").doc("factor of each change"); }

Spec milestones_key() {
  return Spec::list(Spec::updates().at_least(0))
      .required()
      .doc("when the rate changes: updates or 'N epochs'");
}

int64_t count_passed(const std::vector<int64_t>& milestones, int64_t step) {
  return std::count_if(milestones.begin(), milestones.end(), [&](int64_t m) { return step >= m; });
}

}  // namespace

ScheduleKind step_schedule() {
  Schema keys;
  keys.add("step_size",
           Spec::updates().at_least(1).required().doc("updates or epochs between changes"))
      .add("gamma", gamma_key());
  return {.name = "step", .keys = keys, .make = [](const Section& s) {
            return Schedule{.factor = [size = s.integer("step_size"), gamma = s.real("gamma")](
                                          int64_t step, int64_t) {
              return std::pow(gamma, static_cast<double>(step / size));
            }};
          }};
}

ScheduleKind multi_step_schedule() {
  Schema keys;
  keys.add("milestones", milestones_key()).add("gamma", gamma_key());
  return {.name = "multi_step", .keys = keys, .make = [](const Section& s) {
            return Schedule{.factor = [milestones = s.integers("milestones"),
                                       gamma = s.real("gamma")](int64_t step, int64_t) {
              return std::pow(gamma, static_cast<double>(count_passed(milestones, step)));
            }};
          }};
}

ScheduleKind piecewise_schedule() {
  Schema keys;
  keys.add("milestones", milestones_key())
      .add("factors", Spec::list(Spec::real().at_least(0))
                          .required()
                          .doc("rates over the base rate, one more than milestones"));
  return {.name = "piecewise", .keys = keys, .make = [](const Section& s) {
            const std::vector<int64_t> milestones = s.integers("milestones");
            const std::vector<double> factors = s.reals("factors");
            if (factors.size() != milestones.size() + 1)
              throw Error(ErrorCode::kConfig,
                          str("schedule.factors: expected ", milestones.size() + 1,
                              " factors, one more than milestones, found ", factors.size()),
                          s.location("factors"));
            return Schedule{.factor = [milestones, factors](int64_t step, int64_t) {
              return factors[static_cast<size_t>(count_passed(milestones, step))];
            }};
          }};
}

}  // namespace paddle::optim
