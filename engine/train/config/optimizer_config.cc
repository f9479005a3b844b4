#include "train/config/optimizer_config.h"

#include <cmath>

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
  s.add("weight_decay", Spec::real().at_least(0).doc("weight decay in place of the optimizer's"));
  s.add("l1_decay", Spec::real().at_least(0).doc("L1 penalty in place of the optimizer's"));
  s.add("frozen", Spec::boolean().fallback("false").doc("no updates"));
  return s;
}

/// The keys that every optimizer has, and its own.
Schema optimizer_schema(const optim::OptimizerKind& kind, bool has_schedule) {
  Schema s;
  s.add("lr", Spec::real().at_least(0).fallback(kind.lr).doc("base learning rate"));
  s.add("base_batch", Spec::integer().at_least(0).fallback("0").doc(
                          "batch size that lr is tuned for; 0: lr is not scaled"));
  s.add("batch_scaling", Spec::word({"linear", "sqrt"})
                             .fallback("linear")
                             .doc("how lr scales with data.batch_size / base_batch"));
  s.renamed("learning_rate", "lr");
  if (!kind.is_minimizer) {
    s.add("weight_decay", Spec::real().at_least(0).fallback("0").doc(
                              kind.decouples_weight_decay
                                  ? "weight decay, decoupled from the gradient"
                                  : "weight decay: an L2 penalty that is added to the gradient"));
    s.add("l1_decay", Spec::real().at_least(0).fallback("0").doc(
                          "an L1 penalty: its factor times the signs is added to the gradient"));
    s.add("decay_vectors",
          Spec::boolean().fallback("true").doc(
              "whether the decays apply to parameters of rank 0 and 1 (biases, norms)"));
    s.add(
        "layer_decay",
        Spec::real().above(0).at_most(1).fallback("1").doc(
            "factor on the rate from each layer to the one before it; the last has the base rate"));
    s.add("groups",
          Spec::list(Spec::map(group_schema())).fallback("[]").doc("settings by parameter name"));
    if (has_schedule) {
      Spec schedule = optim::schedule_spec();
      schedule.doc("learning rate over the run; default: the config's schedule");
      s.add("schedule", schedule);
    }
  }
  s.add_all(kind.keys);
  return s;
}

Spec spec_of(bool has_schedule) {
  std::vector<std::pair<std::string, Schema>> schemas;
  for (const auto& kind : optim::optimizer_kinds().all())
    schemas.emplace_back(kind->name, optimizer_schema(*kind, has_schedule));
  return Spec::choice("name", std::move(schemas));
}

optim::OptimizerOptions read_optimizer(const Section& s, const std::string& section) {
  optim::OptimizerOptions o;
  o.rule = optim::read_rule(s);
  o.lr = s.real("lr");
  if (o.rule.kind->is_minimizer) return o;
  o.weight_decay = s.real("weight_decay");
  o.l1_decay = s.real("l1_decay");
  o.decays_vectors = s.boolean("decay_vectors");
  o.layer_decay = s.real("layer_decay");
  for (const Section& g : s.sections("groups")) {
    optim::ParameterGroup group;
    group.key = str(section, ".groups.", o.groups.size());
    group.match = g.texts("match");
    if (g.has("lr")) group.lr = g.real("lr");
    if (g.has("lr_scale")) group.lr_scale = g.real("lr_scale");
    if (g.has("weight_decay")) group.weight_decay = g.real("weight_decay");
    if (g.has("l1_decay")) group.l1_decay = g.real("l1_decay");
    group.frozen = g.boolean("frozen");
    o.groups.push_back(group);
  }
  return o;
}

}  // namespace

Spec optimizer_spec() { return spec_of(false); }

Spec named_optimizer_spec() { return spec_of(true); }

std::vector<OptimizerConfig> read_optimizers(const Section& s, config::Diagnostics& diagnostics) {
  std::vector<OptimizerConfig> out;
  const optim::Schedule schedule = optim::read_schedule(s.section("schedule"));
  const auto read = [&](const std::string& name, const Section& section, const std::string& key) {
    OptimizerConfig& optimizer = out.emplace_back();
    optimizer.name = name;
    diagnostics.guard([&] {
      optimizer.options = read_optimizer(section, key);
      optimizer.schedule = schedule;
      if (section.node().find("schedule") && section.has("schedule"))
        optimizer.schedule = optim::read_schedule(section.section("schedule"));
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
