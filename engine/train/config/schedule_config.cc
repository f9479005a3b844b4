// The section `schedule:` of a training config.

#include <map>

#include "train/config/optimizer_config.h"

namespace paddle::train {

using config::Schema;
using config::Section;
using config::Spec;

Spec schedule_spec() {
  const auto with_warmup = [](Schema s) {
    s.add("warmup", Spec::integer().at_least(0).fallback("0").doc("updates of linear warm-up"));
    s.add("warmup_start", Spec::real().at_least(0).at_most(1).fallback("0").doc(
                              "factor of the rate at the first update"));
    return s;
  };
  const auto to_end = [&](Schema s) {
    s.add("steps", Spec::integer().at_least(0).fallback("0").doc("length; 0 is the whole run"));
    s.add("end_factor", Spec::real().at_least(0).fallback("0").doc("final rate over base rate"));
    return with_warmup(s);
  };
  Schema step, multi, exponential, polynomial;
  step.add("step_size", Spec::integer().at_least(1).required().doc("updates between changes"))
      .add("gamma", Spec::real().at_least(0).fallback("0.1").doc("factor of each change"));
  multi
      .add("milestones", Spec::list(Spec::integer().at_least(0))
                             .required()
                             .doc("updates at which the rate changes"))
      .add("gamma", Spec::real().at_least(0).fallback("0.1").doc("factor of each change"));
  exponential.add("gamma", Spec::real().at_least(0).required().doc("factor of each change"));
  polynomial.add("power", Spec::real().above(0).fallback("1").doc("exponent of the polynomial"));
  Schema restarts, one_cycle, cyclic, noam, natural, inverse, piecewise;
  restarts.add("period", Spec::integer().at_least(1).required().doc("updates of the first period"))
      .add("period_factor",
           Spec::integer().at_least(1).fallback("1").doc("factor from period to period"))
      .add("end_factor", Spec::real().at_least(0).fallback("0").doc("lowest rate over base rate"));
  one_cycle
      .add("rise", Spec::real().at_least(0).at_most(1).fallback("0.3").doc(
                       "share of the run in which the rate grows to the base rate"))
      .add("start_factor",
           Spec::real().at_least(0).fallback("0.04").doc("initial rate over base rate"));
  cyclic.add("up", Spec::integer().at_least(1).required().doc("updates in which the rate grows"))
      .add("down", Spec::integer().at_least(0).fallback("0").doc(
                       "updates in which it falls; 0 is as many as up"))
      .add("peak_factor", Spec::real().at_least(0).required().doc("highest rate over base rate"))
      .add("halving",
           Spec::boolean().fallback("false").doc("each cycle is half as high as the one before"))
      .add("gamma", Spec::real().at_least(0).fallback("1").doc("factor of the height per update"));
  noam.add("width", Spec::integer().at_least(1).required().doc("size of the model"))
      .add("rising", Spec::integer().at_least(1).required().doc("updates in which the rate grows"));
  natural.add("gamma", Spec::real().at_least(0).required().doc("rate of exp(-gamma * update)"));
  inverse.add("gamma", Spec::real().at_least(0).required().doc("rate of 1 / (1 + gamma * update)"));
  piecewise
      .add("milestones", Spec::list(Spec::integer().at_least(0))
                             .required()
                             .doc("updates at which the rate changes"))
      .add("factors", Spec::list(Spec::real().at_least(0))
                          .required()
                          .doc("rates over the base rate, one more than milestones"));
  Schema inverse_sqrt, wsd, plateau;
  inverse_sqrt.add("timescale",
                   Spec::integer().at_least(0).fallback("0").doc(
                       "updates in which the rate falls to 0.7 of it; 0: warmup, or 10000"));
  wsd.add("decay", Spec::integer().at_least(0).fallback("0").doc(
                       "updates of the decay at the end; 0: a tenth of the length"))
      .add("shape", Spec::word({"linear", "cosine", "sqrt"})
                        .fallback("linear")
                        .doc("of the decay; sqrt: 1 - sqrt(x)"));
  plateau.add("metric", Spec::text().fallback("loss").doc("of the validation data"))
      .add("mode", Spec::word({"auto", "max", "min"})
                       .fallback("auto")
                       .doc("whether higher or lower is better; auto: as the metric says"))
      .add("factor",
           Spec::real().above(0).below(1).fallback("0.1").doc("of the rate at a reduction"))
      .add("patience", Spec::integer().at_least(0).fallback("10").doc(
                           "evaluations without an improvement that are accepted"))
      .add("threshold",
           Spec::real().at_least(0).fallback("1e-4").doc("smallest improvement that counts"))
      .add("threshold_mode", Spec::word({"relative", "absolute"})
                                 .fallback("relative")
                                 .doc("whether the threshold is a share of the best value"))
      .add("cooldown", Spec::integer().at_least(0).fallback("0").doc(
                           "evaluations after a reduction that are not counted"))
      .add("smallest_factor",
           Spec::real().at_least(0).fallback("0").doc("lowest rate over base rate"));
  return Spec::choice("name", {{"constant", with_warmup({})},
                               {"step", with_warmup(step)},
                               {"multi_step", with_warmup(multi)},
                               {"exponential", with_warmup(exponential)},
                               {"polynomial", to_end(polynomial)},
                               {"cosine", to_end({})},
                               {"linear", to_end({})},
                               {"cosine_restarts", with_warmup(restarts)},
                               {"one_cycle", to_end(one_cycle)},
                               {"cyclic", with_warmup(cyclic)},
                               {"noam", with_warmup(noam)},
                               {"natural_exp", with_warmup(natural)},
                               {"inverse_time", with_warmup(inverse)},
                               {"piecewise", with_warmup(piecewise)},
                               {"inverse_sqrt", with_warmup(inverse_sqrt)},
                               {"wsd", to_end(wsd)},
                               {"reduce_on_plateau", with_warmup(plateau)}})
      .doc("learning rate over the run");
}

optim::ScheduleOptions read_schedule(const Section& s) {
  optim::ScheduleOptions o;
  static const std::map<std::string, optim::ScheduleKind> kKinds = {
      {"constant", optim::ScheduleKind::kConstant},
      {"step", optim::ScheduleKind::kStep},
      {"multi_step", optim::ScheduleKind::kMultiStep},
      {"exponential", optim::ScheduleKind::kExponential},
      {"polynomial", optim::ScheduleKind::kPolynomial},
      {"cosine", optim::ScheduleKind::kCosine},
      {"linear", optim::ScheduleKind::kLinear},
      {"cosine_restarts", optim::ScheduleKind::kCosineRestarts},
      {"one_cycle", optim::ScheduleKind::kOneCycle},
      {"cyclic", optim::ScheduleKind::kCyclic},
      {"noam", optim::ScheduleKind::kNoam},
      {"natural_exp", optim::ScheduleKind::kNaturalExponential},
      {"inverse_time", optim::ScheduleKind::kInverseTime},
      {"piecewise", optim::ScheduleKind::kPiecewise},
      {"inverse_sqrt", optim::ScheduleKind::kInverseSqrt},
      {"wsd", optim::ScheduleKind::kWarmupStableDecay},
      {"reduce_on_plateau", optim::ScheduleKind::kReduceOnPlateau}};
  o.kind = kKinds.at(s.text("name"));
  const auto has = [&](const char* key) { return s.node().find(key) && s.has(key); };
  if (has("steps")) o.steps = s.integer("steps");
  if (has("step_size")) o.step_size = s.integer("step_size");
  if (has("milestones")) o.milestones = s.integers("milestones");
  if (o.kind == optim::ScheduleKind::kCyclic) o.gamma = 1;
  if (has("gamma")) o.gamma = s.real("gamma");
  if (has("power")) o.power = s.real("power");
  if (has("period")) o.period = s.integer("period");
  if (has("period_factor")) o.period_factor = s.integer("period_factor");
  if (has("rise")) o.rise = s.real("rise");
  if (has("start_factor")) o.start_factor = s.real("start_factor");
  if (has("up")) o.up = s.integer("up");
  if (has("down")) o.down = s.integer("down");
  if (has("peak_factor")) o.peak_factor = s.real("peak_factor");
  if (has("halving")) o.halving = s.boolean("halving");
  if (has("width")) o.width = s.integer("width");
  if (has("rising")) o.rising = s.integer("rising");
  if (has("factors")) {
    o.factors = s.reals("factors");
    if (o.factors.size() != o.milestones.size() + 1)
      throw Error(ErrorCode::kConfig,
                  str("schedule.factors: expected ", o.milestones.size() + 1,
                      " factors, one more than milestones, found ", o.factors.size()),
                  s.location("factors"));
  }
  if (has("timescale")) o.timescale = s.integer("timescale");
  if (has("decay")) o.decay = s.integer("decay");
  if (has("shape"))
    o.shape = s.text("shape") == "cosine" ? optim::ScheduleOptions::Shape::kCosine
              : s.text("shape") == "sqrt" ? optim::ScheduleOptions::Shape::kSqrt
                                          : optim::ScheduleOptions::Shape::kLinear;
  if (o.kind == optim::ScheduleKind::kReduceOnPlateau)
    o.plateau = {.metric = s.text("metric"),
                 .factor = s.real("factor"),
                 .patience = s.integer("patience"),
                 .threshold = s.real("threshold"),
                 .is_relative = s.text("threshold_mode") == "relative",
                 .cooldown = s.integer("cooldown"),
                 .smallest_factor = s.real("smallest_factor")};
  if (has("end_factor")) o.end_factor = s.real("end_factor");
  if (has("warmup")) o.warmup = s.integer("warmup");
  if (has("warmup_start")) o.warmup_start = s.real("warmup_start");
  return o;
}

}  // namespace paddle::train
