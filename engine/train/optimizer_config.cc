#include "train/optimizer_config.h"

#include <cmath>
#include <map>

namespace paddle::train {
namespace {

using config::Schema;
using config::Section;
using config::Spec;

Schema group_schema() {
  Schema s;
  s.add(
      "match",
      Spec::list(Spec::text()).or_else(Spec::text()).required().doc("patterns of parameter names"));
  s.add("lr", Spec::real().at_least(0).doc("rate in place of the base rate"));
  s.add("lr_scale", Spec::real().at_least(0).doc("factor on the base rate"));
  s.add("weight_decay",
        Spec::real().at_least(0).doc("L2 penalty; decoupled from the gradient with adamw"));
  s.add("frozen", Spec::boolean().fallback("false").doc("no updates"));
  return s;
}

Schema optimizer_base(const char* lr) {
  Schema s;
  s.add("lr", Spec::real().at_least(0).fallback(lr).doc("base learning rate"));
  s.add("base_batch", Spec::integer().at_least(0).fallback("0").doc(
                          "the batch that lr is meant for; 0: lr is taken as it is"));
  s.add("batch_scaling", Spec::word({"linear", "sqrt"})
                             .fallback("linear")
                             .doc("how lr grows with data.batch_size over base_batch"));
  s.add("weight_decay", Spec::real().at_least(0).fallback("0").doc(
                            "L2 penalty; decoupled from the gradient with adamw"));
  s.add("groups",
        Spec::list(Spec::map(group_schema())).fallback("[]").doc("settings by parameter name"));
  s.renamed("learning_rate", "lr");
  return s;
}

/// The keys that every entry has besides those of `base`.
Spec spec_of(const std::function<Schema(const char* lr)>& optimizer_base) {
  Schema sgd = optimizer_base("0.01"), momentum = optimizer_base("0.01"),
         adam = optimizer_base("0.001"), adagrad = optimizer_base("0.01"),
         rmsprop = optimizer_base("0.01"), adamax = optimizer_base("0.002"),
         adadelta = optimizer_base("1"), asgd = optimizer_base("0.01"),
         nadam = optimizer_base("0.002"), radam = optimizer_base("0.001"),
         rprop = optimizer_base("0.01"), lamb = optimizer_base("0.001"),
         lars = optimizer_base("0.1");
  momentum.add("momentum", Spec::real().at_least(0).below(1).fallback("0.9").doc(
                               "share of the last update that the next one keeps"));
  momentum.add("nesterov", Spec::boolean().fallback("false").doc("look ahead along the momentum"));
  adam.add("beta1",
           Spec::real().at_least(0).below(1).fallback("0.9").doc("decay of the mean of gradients"));
  adam.add("beta2", Spec::real().at_least(0).below(1).fallback("0.999").doc(
                        "decay of the mean of squared gradients"));
  adam.add("epsilon", Spec::real().above(0).fallback("1e-8").doc("added to the denominator"));
  adagrad.add("epsilon", Spec::real().above(0).fallback("1e-6").doc("added to the denominator"));
  adagrad.add("initial_accumulator",
              Spec::real().at_least(0).fallback("0").doc("initial sum of squared gradients"));
  rmsprop.add("rho", Spec::real().at_least(0).below(1).fallback("0.95").doc(
                         "decay of the mean of squared gradients"));
  rmsprop.add("epsilon", Spec::real().above(0).fallback("1e-6").doc("added to the denominator"));
  rmsprop.add("momentum", Spec::real().at_least(0).below(1).fallback("0").doc(
                              "share of the last update that the next one keeps"));
  rmsprop.add("centered", Spec::boolean().fallback("false").doc(
                              "divide by the variance instead of the second moment"));
  for (Schema* s : {&adamax, &nadam, &radam, &lamb}) {
    s->add("beta1",
           Spec::real().at_least(0).below(1).fallback("0.9").doc("decay of the mean of gradients"));
    s->add("beta2", Spec::real().at_least(0).below(1).fallback("0.999").doc(
                        "decay of the mean of squared gradients"));
    s->add("epsilon", Spec::real()
                          .above(0)
                          .fallback(s == &lamb ? "1e-6" : "1e-8")
                          .doc("added to the denominator"));
  }
  nadam.add("momentum_decay",
            Spec::real().at_least(0).fallback("0.004").doc("how fast the momentum grows to beta1"));
  adadelta.add("rho", Spec::real().at_least(0).below(1).fallback("0.95").doc(
                          "decay of the means of squares"));
  adadelta.add("epsilon", Spec::real().above(0).fallback("1e-6").doc("added to both means"));
  asgd.add("lambd", Spec::real().at_least(0).fallback("1e-4").doc("how fast the rate falls"))
      .add("alpha", Spec::real().at_least(0).fallback("0.75").doc("power of that fall"))
      .add("t0", Spec::real().at_least(0).fallback("1e6").doc(
                     "updates before the state `average` is a mean of parameters"));
  rprop
      .add("shrink", Spec::real().above(0).below(1).fallback("0.5").doc(
                         "factor of a step size where the gradient changes its sign"))
      .add("grow", Spec::real().above(1).fallback("1.2").doc(
                       "factor of a step size where the gradient keeps its sign"))
      .add("min_step", Spec::real().at_least(0).fallback("1e-6").doc("smallest step size"))
      .add("max_step", Spec::real().above(0).fallback("50").doc("largest step size"));
  lars.add("momentum", Spec::real().at_least(0).below(1).fallback("0.9").doc(
                           "share of the last update that the next one keeps"))
      .add("coefficient",
           Spec::real().above(0).fallback("0.001").doc("factor of the ratio of norms"))
      .add("epsilon", Spec::real().at_least(0).fallback("0").doc("added to the denominator"));
  return Spec::choice("name", {{"sgd", sgd},
                               {"momentum", momentum},
                               {"adam", adam},
                               {"adamw", adam},
                               {"adagrad", adagrad},
                               {"rmsprop", rmsprop},
                               {"adamax", adamax},
                               {"adadelta", adadelta},
                               {"asgd", asgd},
                               {"nadam", nadam},
                               {"radam", radam},
                               {"rprop", rprop},
                               {"lamb", lamb},
                               {"lars", lars}});
}

optim::OptimizerOptions read_optimizer(const Section& s, const std::string& section) {
  optim::OptimizerOptions o;
  static const std::map<std::string, optim::OptimizerKind> kKinds = {
      {"sgd", optim::OptimizerKind::kSgd},         {"momentum", optim::OptimizerKind::kMomentum},
      {"adam", optim::OptimizerKind::kAdam},       {"adamw", optim::OptimizerKind::kAdamW},
      {"adagrad", optim::OptimizerKind::kAdagrad}, {"rmsprop", optim::OptimizerKind::kRmsProp},
      {"adamax", optim::OptimizerKind::kAdamax},   {"adadelta", optim::OptimizerKind::kAdadelta},
      {"asgd", optim::OptimizerKind::kAsgd},       {"nadam", optim::OptimizerKind::kNAdam},
      {"radam", optim::OptimizerKind::kRAdam},     {"rprop", optim::OptimizerKind::kRprop},
      {"lamb", optim::OptimizerKind::kLamb},       {"lars", optim::OptimizerKind::kLars}};
  o.kind = kKinds.at(s.text("name"));
  const auto maybe = [&](const char* key, double& target) {
    if (s.node().find(key) && s.has(key)) target = s.real(key);
  };
  o.momentum =
      o.kind == optim::OptimizerKind::kMomentum || o.kind == optim::OptimizerKind::kLars ? 0.9 : 0;
  if (o.kind == optim::OptimizerKind::kAdagrad || o.kind == optim::OptimizerKind::kRmsProp ||
      o.kind == optim::OptimizerKind::kAdadelta || o.kind == optim::OptimizerKind::kLamb)
    o.epsilon = 1e-6;
  if (o.kind == optim::OptimizerKind::kLars) o.epsilon = 0;
  maybe("lr", o.lr);
  maybe("weight_decay", o.weight_decay);
  maybe("momentum", o.momentum);
  maybe("beta1", o.beta1);
  maybe("beta2", o.beta2);
  maybe("epsilon", o.epsilon);
  maybe("rho", o.rho);
  maybe("initial_accumulator", o.initial_accumulator);
  maybe("momentum_decay", o.momentum_decay);
  maybe("lambd", o.lambd);
  maybe("alpha", o.alpha);
  maybe("t0", o.t0);
  maybe("shrink", o.shrink);
  maybe("grow", o.grow);
  maybe("min_step", o.min_step);
  maybe("max_step", o.max_step);
  maybe("coefficient", o.coefficient);
  if (s.node().find("nesterov")) o.nesterov = s.boolean("nesterov");
  if (s.node().find("centered")) o.centered = s.boolean("centered");
  for (const Section& g : s.sections("groups")) {
    optim::ParameterGroup group;
    group.key = str(section, ".groups.", o.groups.size());
    group.match = g.texts("match");
    if (g.has("lr")) group.lr = g.real("lr");
    if (g.has("lr_scale")) group.lr_scale = g.real("lr_scale");
    if (g.has("weight_decay")) group.weight_decay = g.real("weight_decay");
    group.frozen = g.boolean("frozen");
    o.groups.push_back(group);
  }
  return o;
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
      {"piecewise", optim::ScheduleKind::kPiecewise}};
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
  if (has("end_factor")) o.end_factor = s.real("end_factor");
  if (has("warmup")) o.warmup = s.integer("warmup");
  if (has("warmup_start")) o.warmup_start = s.real("warmup_start");
  return o;
}

}  // namespace

Spec optimizer_spec() { return spec_of(optimizer_base); }

Spec named_optimizer_spec() {
  return spec_of([](const char* lr) {
    Schema s = optimizer_base(lr);
    Spec schedule = schedule_spec();
    schedule.doc("learning rate over the run; default: the config's schedule");
    s.add("schedule", schedule);
    return s;
  });
}

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
                               {"piecewise", with_warmup(piecewise)}})
      .doc("learning rate over the run");
}

std::vector<OptimizerConfig> read_optimizers(const Section& s, config::Diagnostics& diagnostics) {
  std::vector<OptimizerConfig> out;
  const optim::ScheduleOptions schedule = read_schedule(s.section("schedule"));
  const auto read = [&](const std::string& name, const Section& section, const std::string& key) {
    OptimizerConfig& optimizer = out.emplace_back();
    optimizer.name = name;
    diagnostics.guard([&] {
      optimizer.options = read_optimizer(section, key);
      optimizer.schedule = schedule;
      if (section.node().find("schedule") && section.has("schedule"))
        optimizer.schedule = read_schedule(section.section("schedule"));
    });
  };
  if (s.has("optimizer")) {
    read("", s.section("optimizer"), "optimizer");
    return out;
  }
  if (!s.has("step"))
    throw Error(ErrorCode::kConfig,
                "'optimizers' needs a 'step', whose updates name them: update(loss, optimizer=…)",
                s.location("optimizers"));
  for (const config::Entry& e : s.at("optimizers").entries)
    read(e.key.text, Section(e.value), "optimizers." + e.key.text);
  if (out.empty())
    throw Error(ErrorCode::kConfig, "'optimizers' is empty", s.location("optimizers"));
  return out;
}

void scale_rates(const Section& section, int64_t batch_size, OptimizerConfig& optimizer) {
  const int64_t base = section.integer("base_batch");
  if (base == 0) return;
  const double ratio = static_cast<double>(batch_size) / static_cast<double>(base);
  optimizer.rate_factor = section.text("batch_scaling") == "sqrt" ? std::sqrt(ratio) : ratio;
  optimizer.options.lr *= optimizer.rate_factor;
  for (optim::ParameterGroup& group : optimizer.options.groups)
    if (group.lr) *group.lr *= optimizer.rate_factor;
}

}  // namespace paddle::train
