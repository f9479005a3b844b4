#pragma once
// The section `quant:` of a configuration: what paddle-quant does with a model.

#include <optional>
#include <string>
#include <vector>

#include "config/schema.h"
#include "quant_common/layer_format.h"
#include "quant_common/observer.h"

namespace paddle::quant {

/// A step of `methods:`.
struct MethodStep {
  std::string name;  ///< equalize, smooth, awq, gptq, adaround or bias_correction
  double alpha = 0.5, damp = 0.01;
  SourceLocation where;
};

/// How much worse a metric of the config may become.
struct MetricLimit {
  enum class Worse { kAsMetric, kFall, kRise };
  std::string metric;
  Worse worse = Worse::kAsMetric;  ///< which change counts; kAsMetric: as the metric says
  double amount = 0;               ///< of 0.5%: 0.005
  bool percent = false;            ///< a rise is then a share of the float model's value
  SourceLocation where;
};

/// Conditions that a model must meet to be accepted.
struct Acceptance {
  std::optional<double> drop;        ///< largest fall of the accuracy, as a share of 1
  std::vector<MetricLimit> metrics;  ///< of the model's own config
  std::optional<double> confidence;  ///< percent of certainty that limits of metrics hold
  std::optional<double> sqnr_db;     ///< least signal-to-noise ratio of the output
  std::optional<double> speedup;     ///< least ratio of latencies
  std::optional<double> size_ratio;  ///< largest ratio of file sizes
};

/// `train:`, with which a training run rounds to integers (fake_quant.h).
struct QuantTraining {
  int64_t observe = 32;        ///< steps that only observe the ranges of inputs
  bool learned_scales = true;  ///< LSQ; else moving averages of ranges
  /// Steps after which batch norms keep their running statistics and use them; none: never.
  std::optional<int64_t> freeze_norms;
};

struct QuantConfig {
  std::string scheme = "int8";
  std::string target = "cpu";
  LayerFormat format;
  std::string observer = "min_max";
  RangeMethod range = RangeMethod::kMinMax;
  double percentile = 99.99;
  int64_t samples = 256, batch = 8;
  std::string data, eval_data;  ///< as --data takes them; "" for the model's own
  std::string statistics;       ///< file of histograms to read or write; "": none
  std::vector<LayerRule> layers;
  std::vector<MethodStep> methods;
  bool products = true;  ///< those of two activations are layers too
  bool measure = true;   ///< layers that are slower than in floats stay float
  Acceptance accept;
  std::optional<QuantTraining> training;
  std::string output;
  config::Node document;   ///< resolved
  std::string run_config;  ///< the file, if it is the config of a run with data and metrics; or ""
};

/// The schemes by name.
std::vector<std::string> scheme_names();
/// Keys of `quant.accept`, without `metrics`.
std::vector<std::string> accept_keys();
/// Keys of `quant:`.
config::Schema quant_schema();
/// Registers the section (config/sections.h).
void register_section();
/// Registers the other keys of a config that only paddle-quant reads.
void register_keys();
/// Reads a resolved section `quant`.
QuantConfig read_quant_section(const config::Section& section, config::Diagnostics& diagnostics);
/// Reads `file` ("" for none) with overrides; keys of other tools are allowed next to `quant:` and
/// is checked. All errors at once, as kConfig.
QuantConfig read_quant_config(const std::string& file, const std::vector<std::string>& overrides);

}  // namespace paddle::quant
