// The reduction of the rate when a validation metric stops improving.

#include <algorithm>
#include <cmath>

#include "optim/schedule.h"

namespace paddle::optim {

using config::Schema;
using config::Section;
using config::Spec;

ScheduleKind reduce_on_plateau_schedule() {
  Schema keys;
  keys.add("metric", Spec::text().fallback("loss").doc("of the validation data"))
      .add("mode", Spec::word({"auto", "max", "min"})
                       .fallback("auto")
                       .doc("whether higher or lower is better; auto: as the metric says"))
      .add("factor",
           Spec::real().above(0).below(1).fallback("0.1").doc("of the rate at a reduction"))
      .add("patience", Spec::integer().at_least(0).fallback("10").doc(
                           "evaluations without an improvement before the rate is reduced"))
      .add("threshold",
           Spec::real().at_least(0).fallback("1e-4").doc("smallest improvement that counts"))
      .add("threshold_mode", Spec::word({"relative", "absolute"})
                                 .fallback("relative")
                                 .doc("whether the threshold is a share of the best value"))
      .add("cooldown", Spec::integer().at_least(0).fallback("0").doc(
                           "evaluations after a reduction that are not counted"))
      .add("smallest_factor",
           Spec::real().at_least(0).fallback("0").doc("lowest rate over base rate"));
  return {.name = "reduce_on_plateau", .keys = keys, .make = [](const Section& s) {
            return Schedule{
                .factor = [](int64_t, int64_t) { return 1.0; },
                .plateau = PlateauOptions{.metric = s.text("metric"),
                                          .factor = s.real("factor"),
                                          .patience = s.integer("patience"),
                                          .threshold = s.real("threshold"),
                                          .is_relative = s.text("threshold_mode") == "relative",
                                          .cooldown = s.integer("cooldown"),
                                          .smallest_factor = s.real("smallest_factor")}};
          }};
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
