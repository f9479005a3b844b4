#include "train/config/optimizer_config.h"

#include <cmath>
#include <map>

namespace paddle::train {
namespace {

constexpr const char* kDecayDoc =
    "weight decay: decoupled from the gradient with adamw, lamb, lion, adafactor, muon and "
    "schedule_free_adamw, else an L2 penalty that is added to it";

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
  s.add("weight_decay", Spec::real().at_least(0).doc(kDecayDoc));
  s.add("frozen", Spec::boolean().fallback("false").doc("no updates"));
  return s;
}

/// The keys of every optimizer.
Schema rate_keys(const char* lr) {
  Schema s;
  s.add("lr", Spec::real().at_least(0).fallback(lr).doc("base learning rate"));
  s.add("base_batch", Spec::integer().at_least(0).fallback("0").doc(
                          "the batch that lr is meant for; 0: lr is taken as it is"));
  s.add("batch_scaling", Spec::word({"linear", "sqrt"})
                             .fallback("linear")
                             .doc("how lr grows with data.batch_size over base_batch"));
  s.renamed("learning_rate", "lr");
  return s;
}

Schema optimizer_base(const char* lr) {
  Schema s = rate_keys(lr);
  s.add("weight_decay", Spec::real().at_least(0).fallback("0").doc(kDecayDoc));
  s.add("decay_vectors",
        Spec::boolean().fallback("true").doc(
            "whether weight_decay applies to parameters of rank 0 and 1 (biases, norms)"));
  s.add("layer_decay",
        Spec::real().above(0).at_most(1).fallback("1").doc(
            "factor on the rate from each layer to the one before it; the last has the base rate"));
  s.add("groups",
        Spec::list(Spec::map(group_schema())).fallback("[]").doc("settings by parameter name"));
  return s;
}

/// The keys of the optimizers that have no update operation of their own.
void add_composed(Schema& lion, Schema& adafactor, Schema& muon, Schema& schedule_free) {
  const auto beta = [](const char* value, const char* doc) {
    return Spec::real().at_least(0).below(1).fallback(value).doc(doc);
  };
  lion.add("beta1", beta("0.9", "share of the moment in the direction of an update"))
      .add("beta2", beta("0.99", "decay of the moment"));
  adafactor
      .add("beta2_decay", Spec::real().at_most(0).fallback("-0.8").doc(
                              "second moments change by update^beta2_decay"))
      .add("parameter_epsilon", Spec::real().at_least(0).fallback("1e-3").doc(
                                    "smallest root mean square of a parameter"))
      .add("threshold",
           Spec::real().above(0).fallback("1").doc("largest root mean square of an update"));
  muon.add("momentum", beta("0.95", "decay of the mean of gradients"))
      .add("nesterov", Spec::boolean().fallback("true").doc("look ahead along the momentum"))
      .add("iterations", Spec::integer().at_least(1).at_most(100).fallback("5").doc(
                             "of Newton and Schulz, which orthogonalize an update"))
      .add("match_rms", Spec::boolean().fallback("false").doc(
                            "scale updates as large as those of AdamW, whose rates then apply"))
      .add("adamw", Spec::list(Spec::text())
                        .or_else(Spec::text())
                        .fallback("[]")
                        .doc("patterns of matrices that AdamW updates, as it does all vectors: "
                             "embeddings, the last layer"))
      .add("adamw_lr", Spec::real().at_least(0).fallback("3e-4").doc("base rate of AdamW"))
      .add("beta1", beta("0.9", "AdamW: decay of the mean of gradients"))
      .add("beta2", beta("0.999", "AdamW: decay of the mean of squared gradients"))
      .add("epsilon", Spec::real().above(0).fallback("1e-8").doc("AdamW: in the denominator"));
  schedule_free
      .add("beta1", Spec::real().above(0).below(1).fallback("0.9").doc(
                        "place of the gradient between the steps (0) and their mean (1)"))
      .add("beta2", beta("0.999", "decay of the mean of squared gradients"))
      .add("epsilon", Spec::real().above(0).fallback("1e-8").doc("added to the denominator"))
      .add("rising", Spec::integer().at_least(0).fallback("0").doc(
                         "updates in which the rate grows; they weigh less in the mean"));
}

Schema lbfgs_schema() {
  Schema s = rate_keys("1");
  s.add("iterations",
        Spec::integer().at_least(1).at_most(1 << 20).fallback("20").doc("in an update, at most"));
  s.add("evaluations", Spec::integer().at_least(1).at_most(1 << 20).doc(
                           "of the loss in an update, at most; default: 1.25 times iterations"));
  s.add("history", Spec::integer().at_least(1).at_most(10000).fallback("20").doc(
                       "steps that it remembers, each twice the size of the parameters"));
  s.add("tolerance_grad", Spec::real().at_least(0).fallback("1e-7").doc(
                              "largest element of the gradient at a minimum"));
  s.add("tolerance_change",
        Spec::real().at_least(0).fallback("1e-9").doc(
            "an update ends where loss or parameters change by less than this"));
  s.add("line_search", Spec::word({"strong_wolfe", "none"})
                           .fallback("strong_wolfe")
                           .doc("how the length of a step is found; none: it is lr"));
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
         lars = optimizer_base("0.1"), lion = optimizer_base("0.0001"),
         adafactor = optimizer_base("0.01"), muon = optimizer_base("0.02"),
         schedule_free = optimizer_base("0.0025");
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
  add_composed(lion, adafactor, muon, schedule_free);
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
                               {"lars", lars},
                               {"lion", lion},
                               {"adafactor", adafactor},
                               {"muon", muon},
                               {"schedule_free_adamw", schedule_free},
                               {"lbfgs", lbfgs_schema()}});
}

optim::OptimizerOptions read_optimizer(const Section& s, const std::string& section) {
  optim::OptimizerOptions o;
  static const std::map<std::string, optim::OptimizerKind> kKinds = {
      {"sgd", optim::OptimizerKind::kSgd},
      {"momentum", optim::OptimizerKind::kMomentum},
      {"adam", optim::OptimizerKind::kAdam},
      {"adamw", optim::OptimizerKind::kAdamW},
      {"adagrad", optim::OptimizerKind::kAdagrad},
      {"rmsprop", optim::OptimizerKind::kRmsProp},
      {"adamax", optim::OptimizerKind::kAdamax},
      {"adadelta", optim::OptimizerKind::kAdadelta},
      {"asgd", optim::OptimizerKind::kAsgd},
      {"nadam", optim::OptimizerKind::kNAdam},
      {"radam", optim::OptimizerKind::kRAdam},
      {"rprop", optim::OptimizerKind::kRprop},
      {"lamb", optim::OptimizerKind::kLamb},
      {"lars", optim::OptimizerKind::kLars},
      {"lion", optim::OptimizerKind::kLion},
      {"adafactor", optim::OptimizerKind::kAdafactor},
      {"muon", optim::OptimizerKind::kMuon},
      {"schedule_free_adamw", optim::OptimizerKind::kScheduleFree},
      {"lbfgs", optim::OptimizerKind::kLbfgs}};
  o.kind = kKinds.at(s.text("name"));
  if (o.kind == optim::OptimizerKind::kLbfgs) {
    o.lr = s.real("lr");
    o.lbfgs.iterations = s.integer("iterations");
    o.lbfgs.evaluations =
        s.has("evaluations") ? s.integer("evaluations") : o.lbfgs.iterations * 5 / 4;
    o.lbfgs.history = s.integer("history");
    o.lbfgs.tolerance_grad = s.real("tolerance_grad");
    o.lbfgs.tolerance_change = s.real("tolerance_change");
    o.lbfgs.line_search = s.text("line_search") == "strong_wolfe";
    return o;
  }
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
  maybe("beta2_decay", o.beta2_decay);
  maybe("parameter_epsilon", o.parameter_epsilon);
  maybe("threshold", o.threshold);
  maybe("adamw_lr", o.adamw_lr);
  if (s.node().find("iterations")) o.iterations = s.integer("iterations");
  if (s.node().find("match_rms")) o.match_rms = s.boolean("match_rms");
  if (s.node().find("adamw")) o.adamw = s.texts("adamw");
  if (s.node().find("rising")) o.rising = s.integer("rising");
  o.decays_vectors = s.boolean("decay_vectors");
  o.layer_decay = s.real("layer_decay");
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
