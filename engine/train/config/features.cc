#include "train/config/features.h"

#include <algorithm>
#include <cmath>

#include "base/text.h"
#include "config/overrides.h"

namespace paddle::train {

using config::Schema;
using config::Section;
using config::Spec;

void add_feature_keys(Schema& train) {
  train.add("best", Spec::text().fallback("''").doc(
                        "keep the checkpoint with the best of this metric (or 'loss')"));
  train.add("best_mode",
            Spec::word({"auto", "max", "min"})
                .fallback("auto")
                .doc("whether a higher or lower train.best is better; auto: as the metric says"));
  Schema early;
  early
      .add("metric",
           Spec::text().doc("of the validation data; default: train.best, or else the loss"))
      .add("mode", Spec::word({"auto", "max", "min"})
                       .fallback("auto")
                       .doc("whether higher or lower is better; auto: as the metric says"))
      .add("patience", Spec::integer().at_least(0).fallback("3").doc(
                           "evaluations in a row without an improvement before the run ends"))
      .add("min_delta", Spec::real().at_least(0).fallback("0").doc(
                            "smallest difference that is an improvement"));
  train.add("early_stop",
            Spec::map(early).fallback("null").doc("end the run when a metric no longer improves"));
  train.add("log_gradient_norm",
            Spec::boolean().doc("log the norm of all gradients, before clipping; "
                                "default: where clip.global_norm is set"));
  train.add("digests", Spec::boolean().fallback("false").doc(
                           "write digests of all weights after each update into digests.jsonl, "
                           "for paddle compare-runs"));
  Schema ema;
  ema.add("decay", Spec::real().at_least(0).below(1).fallback("0.999").doc(
                       "decay: the fraction of the average that an update keeps"))
      .add("warmup", Spec::boolean().fallback("true").doc(
                         "lower it in the first updates: at most (1 + t) / (10 + t) in update t"));
  train.add("ema", Spec::map(ema).fallback("null").doc(
                       "moving average of the weights, which evaluation and model/ use"));
  Schema swa;
  swa.add("start", Spec::text().required().doc(
                       "updates (N) or epochs (N epochs) after which the average begins"))
      .add("every", Spec::text().fallback("1 epoch").doc(
                        "updates (N) or epochs (N epochs) between weights that are averaged"));
  train.add("swa", Spec::map(swa).fallback("null").doc(
                       "equal average of weights from a late part of the run (stochastic weight "
                       "averaging), which evaluation and model/ use"));
  train.add("max_time", Spec::duration().above(0).doc(
                            "end the run after this time of training: 90, 30m, 1h30m"));
}

Spec init_spec() {
  Schema init;
  init.add("weights", Spec::path().required().doc("file or folder of any format of paddle-convert"))
      .add("map", Spec::path().doc("rules that rename tensors, as of paddle-convert --map"))
      .add("fitted",
           Spec::path().doc("fitted.json of a saved model: the data uses its vocabularies, "
                            "classes and scaling instead of its own"))
      .add("optimizer",
           Spec::path().doc(
               "optimizer states of PaddlePaddle (.pdopt), with which the run continues "
               "after the updates that were made"))
      .add("updates", Spec::integer().at_least(0).doc(
                          "with optimizer: the updates that were made; default: as its file says"))
      .add("allow_missing", Spec::list(Spec::text())
                                .or_else(Spec::text())
                                .fallback("[]")
                                .doc("patterns of parameters that the file may lack"))
      .add("allow_unused", Spec::list(Spec::text())
                               .or_else(Spec::text())
                               .fallback("[]")
                               .doc("patterns of tensors that the model may not use"));
  Spec spec = Spec::map(init);
  spec.doc("weights to begin with");
  return spec;
}

WatchedMetric read_watched(const std::string& name, const std::string& mode,
                           const std::vector<MetricDefinition>& metrics, const Section& section,
                           const std::string& key, const std::string& path,
                           config::Diagnostics& diagnostics) {
  const std::string prefix = path + (path.ends_with(key) ? "" : "." + key);
  std::vector<std::string> names = {"loss"};
  metrics::Direction direction = metrics::Direction::kLower;
  for (const MetricDefinition& m : metrics) {
    names.push_back(m.name);
    if (m.name == name) direction = m.direction();
  }
  const std::string mode_key = key == "best" ? "best_mode" : "mode";
  const std::string mode_path = key == "best" ? "train.best_mode" : path + ".mode";
  if (std::find(names.begin(), names.end(), name) == names.end())
    diagnostics.add(
        ErrorCode::kConfig,
        prefix + ": '" + name + "' is neither 'loss' nor a metric" + did_you_mean(name, names),
        section.location(key));
  else if (direction == metrics::Direction::kUnknown && mode == "auto")
    diagnostics.add(ErrorCode::kConfig,
                    prefix + ": '" + name + "' may be better when higher or lower; give " +
                        mode_path + ": max or min",
                    section.location(key));
  else if (direction != metrics::Direction::kUnknown && mode != "auto" &&
           (mode == "max") != (direction == metrics::Direction::kHigher))
    diagnostics.add(
        ErrorCode::kConfig,
        mode_path + ": '" + name + "' is better when " + (mode == "max" ? "lower" : "higher"),
        section.location(mode_key));
  return {name, mode == "auto" ? direction == metrics::Direction::kHigher : mode == "max"};
}

std::optional<EarlyStop> read_early_stop(const Section& train,
                                         const std::vector<MetricDefinition>& metrics,
                                         config::Diagnostics& diagnostics) {
  if (!train.has("early_stop")) return std::nullopt;
  const Section s = train.section("early_stop");
  EarlyStop out;
  out.patience = s.integer("patience");
  out.min_delta = s.real("min_delta");
  std::string mode = s.text("mode"), name = train.text("best");
  if (s.has("metric"))
    name = s.text("metric");
  else if (name.empty())
    name = "loss";
  else if (mode == "auto")
    mode = train.text("best_mode");
  const std::string key = s.has("metric") ? "metric" : "patience";
  out.metric = read_watched(name, mode, metrics, s, key, "train.early_stop", diagnostics);
  return out;
}

Interval read_interval(const Section& section, const std::string& path, const std::string& key) {
  const std::string& text = section.text(key);
  if (text == "never") return {};
  int64_t count = 0;
  size_t used = 0;
  try {
    count = std::stoll(text, &used);
  } catch (const std::exception&) {
    used = 0;
  }
  const std::string_view unit = trim(std::string_view(text).substr(used));
  if (used == 0 || count <= 0 ||
      !(unit.empty() || unit == "epoch" || unit == "epochs" || unit == "steps" || unit == "step"))
    throw Error(ErrorCode::kConfig,
                path + "." + key + ": expected 'N', 'N epochs' or 'never', found '" + text + "'",
                section.location(key));
  return unit.starts_with("epoch") ? Interval{0, count} : Interval{count, 0};
}

std::optional<EqualAveraging> read_equal_averaging(const Section& train) {
  if (!train.has("swa")) return std::nullopt;
  const Section s = train.section("swa");
  EqualAveraging out;
  for (const char* key : {"start", "every"}) {
    const Interval interval = read_interval(s, "train.swa", key);
    if (interval.steps + interval.epochs == 0)
      throw Error(ErrorCode::kConfig,
                  str("train.swa.", key, ": expected 'N' or 'N epochs', found 'never'"),
                  s.location(key));
    (std::string_view(key) == "start" ? out.start : out.every) = interval;
  }
  return out;
}

std::optional<Averaging> read_averaging(const Section& train) {
  if (!train.has("ema")) return std::nullopt;
  const Section s = train.section("ema");
  return Averaging{.decay = s.real("decay"), .warmup = s.boolean("warmup")};
}

double read_max_time(const Section& train) {
  return train.has("max_time") ? train.seconds("max_time") : 0;
}

InitialWeights read_init(const Section& config) {
  InitialWeights out;
  if (!config.has("init")) return out;
  const Section s = config.section("init");
  out.file = config::resolve_path(s.at("weights"));
  if (s.has("map")) out.rules = config::resolve_path(s.at("map"));
  if (s.has("fitted")) out.fitted = config::resolve_path(s.at("fitted"));
  if (s.has("optimizer")) out.optimizer = config::resolve_path(s.at("optimizer"));
  if (s.has("updates")) {
    if (out.optimizer.empty())
      throw Error(ErrorCode::kConfig, "init.updates: has no effect without `optimizer`",
                  s.at("updates").location());
    out.updates = s.integer("updates");
  }
  out.allow_missing = s.texts("allow_missing");
  out.allow_unused = s.texts("allow_unused");
  return out;
}

}  // namespace paddle::train
