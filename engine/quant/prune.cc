#include "quant/prune.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <filesystem>
#include <map>
#include <numeric>

#include <nlohmann/json.hpp>

#include "base/files.h"
#include "base/text.h"
#include "formats/onnx/write.h"
#include "onnx/export/export.h"
#include "program/checkpoint.h"
#include "program/saved_model.h"
#include "program/traced_model.h"
#include "quant/calibration.h"
#include "quant/output.h"

namespace paddle::quant {
namespace {

constexpr int64_t kGroup = 4, kKept = 2;

/// The features of a row that form a group: every `step`-th, four of them.
struct Grouping {
  int64_t inputs = 0;  ///< input channels, or features of a linear layer
  int64_t step = 1;    ///< positions of a window
};

/// Why a layer cannot be pruned; "" if it can.
std::string obstacle(const Quantizable& model, size_t i, Grouping& grouping) {
  const Layer& layer = model.layers()[i];
  if (!layer.quantized) return layer.why;
  if (layer.op == "embedding") return "tables are not pruned";
  if (layer.op == "conv2d_transpose") return "transposed convolutions are not pruned";
  if (layer.parameter.empty()) return "its weight is not a parameter";
  const Dims& shape = model.weight(i).shape;
  grouping.inputs = layer.channels_first() ? shape.at(1) : shape.front();
  grouping.step = 1;
  if (layer.channels_first())
    for (size_t d = 2; d < shape.size(); ++d) grouping.step *= shape[d];
  if (grouping.inputs % kGroup != 0)
    return str("its ", grouping.inputs, " inputs are not a multiple of 4");
  return "";
}

/// Zeros two of every four weights in a row along the inputs: those of the least `score(row,
/// feature)`.
template <class Score>
double prune_rows(WeightRows& rows, const Grouping& grouping, const Score& score) {
  double removed = 0, whole = 0;
  for (const float x : rows.values) whole += static_cast<double>(x) * x;
  for (int64_t c = 0; c < rows.channels; ++c)
    for (int64_t input = 0; input < grouping.inputs; input += kGroup)
      for (int64_t at = 0; at < grouping.step; ++at) {
        std::array<int64_t, kGroup> features;
        for (int64_t i = 0; i < kGroup; ++i)
          features[static_cast<size_t>(i)] = (input + i) * grouping.step + at;
        std::stable_sort(features.begin(), features.end(),
                         [&](int64_t a, int64_t b) { return score(c, a) > score(c, b); });
        for (size_t i = kKept; i < features.size(); ++i) {
          float& weight = rows.row(c)[features[i]];
          removed += static_cast<double>(weight) * weight;
          weight = 0;
        }
      }
  return whole > 0 ? std::sqrt(removed / whole) : 0;
}

double share_of_zeros(const WeightRows& rows) {
  const auto zeros = std::count(rows.values.begin(), rows.values.end(), 0.0f);
  return static_cast<double>(zeros) / static_cast<double>(std::max<size_t>(1, rows.values.size()));
}

}  // namespace

PruneReport prune(const PruneJob& given, const Progress& progress) {
  PruneJob job = given;
  const Paths paths(job.output);
  check_output(job.output, job.overwrite);
  if (!paths.only_file && !is_directory(job.model))
    fail(ErrorCode::kUsage, job.model, ": is not a folder, so --output must end in .onnx");
  const auto model = program::load_model(job.model, job.load);
  const program::TracedModel traced = program::trace_model(job.model, job.load);
  Quantizable layers(*traced.function, traced.weight);
  job.calibration = data_of(job.calibration, *model, "train");
  job.evaluation = data_of(job.evaluation, *model, "valid");
  if (!is_given(job.evaluation)) job.evaluation = job.calibration;
  if (!is_given(job.evaluation) && job.check)
    fail(ErrorCode::kUsage, job.model, ": has no data to compare on; give --data, or --no-check");
  if (!is_given(job.calibration) && job.rule == PruneRule::kWanda)
    fail(ErrorCode::kUsage, job.model, ": --by wanda reads activations; give --data");

  PruneReport report;
  std::vector<std::string> names;
  std::vector<Grouping> groupings(layers.layers().size());
  std::vector<size_t> pruned;
  for (size_t i = 0; i < groupings.size(); ++i) {
    const Layer& layer = layers.layers()[i];
    PrunedLayer each{layer.name, layer.op, false, obstacle(layers, i, groupings[i]), 0, 0};
    names.push_back(layer.name);
    const bool wanted = job.match.empty() ||
                        std::any_of(job.match.begin(), job.match.end(), [&](const auto& pattern) {
                          return matches_pattern(pattern, layer.name);
                        });
    if (!wanted) each.why = "--match";
    each.pruned = each.why.empty();
    if (each.pruned) pruned.push_back(i);
    report.layers.push_back(each);
  }
  for (const std::string& pattern : job.match)
    if (std::none_of(names.begin(), names.end(),
                     [&](const std::string& name) { return matches_pattern(pattern, name); }))
      fail(ErrorCode::kConfig, "--match: no layer matches '", pattern, "'",
           did_you_mean(pattern, names));
  if (pruned.empty()) fail(ErrorCode::kModel, job.model, ": has no layer that can be pruned");

  // The mean square of each feature, where the rule wants it.
  std::vector<std::vector<double>> squares(groupings.size());
  if (job.rule == PruneRule::kWanda) {
    progress({"observing activations"});
    CalibrationData data(*model, job.calibration, job.samples);
    std::vector<size_t> observed;
    for (const size_t i : pruned) {
      if (can_collect_moments(layers, i))
        observed.push_back(i);
      else
        report.layers[i].why = "by magnitude: its activations are too large to collect";
    }
    collect_moments(
        layers, observed, [&](const auto& use) { data.for_each(use); }, traced.weight,
        [&](size_t layer, const Moments& moments) {
          for (int64_t f = 0; f < moments.features; ++f)
            squares[layer].push_back(moments.square(f));
        });
  }
  progress({"pruning"});
  std::map<std::string, Array> weights;
  for (const size_t i : pruned) {
    const Layer& layer = layers.layers()[i];
    const Array weight = traced.weight(layer.parameter);
    WeightRows rows = weight_rows(weight, layer.channel_axis());
    const std::vector<double>& square = squares[i];
    report.layers[i].error = prune_rows(rows, groupings[i], [&](int64_t c, int64_t f) {
      const double size = std::abs(static_cast<double>(rows.row(c)[f]));
      return square.empty() ? size : size * std::sqrt(square[static_cast<size_t>(f)]);
    });
    report.layers[i].zeros = share_of_zeros(rows);
    weights[layer.parameter] =
        weight_array(rows, weight.shape, layer.channel_axis()).cast(weight.dtype);
  }
  const WeightSource weight = [&](const std::string& name) {
    const auto found = weights.find(name);
    return found == weights.end() ? traced.weight(name) : found->second;
  };
  progress({"writing"});
  paths.begin(false);
  std::string written = (paths.partial / (paths.only_file ? paths.file : "model")).string();
  if (paths.only_file) {
    onnx::ExportOptions options;
    options.name = traced.name.empty() ? "model" : traced.name;
    options.producer = job.producer;
    formats::onnx::write_model(onnx::export_function(*traced.function, weight, options).model,
                               written, {});
  } else {
    program::write_folder(written, program::find_model_folder(job.model), traced.name,
                          traced.function, weight);
  }
  if (job.check) {
    progress({"comparing"});
    const auto result = program::load_model(written, {});
    report.comparison = compare_models(*model, *result, job.evaluation);
  }
  report.file =
      (paths.base / std::filesystem::path(written).filename()).lexically_normal().string();
  paths.publish(true);
  return report;
}

std::string prune_json(const PruneJob& job, const PruneReport& report) {
  nlohmann::ordered_json layers = nlohmann::ordered_json::array();
  for (const PrunedLayer& each : report.layers) {
    nlohmann::ordered_json entry = {{"name", each.name}, {"op", each.op}, {"pruned", each.pruned}};
    if (each.pruned) {
      entry["zeros"] = each.zeros;
      entry["relative_error"] = each.error;
    }
    if (!each.why.empty()) entry["why"] = each.why;
    layers.push_back(std::move(entry));
  }
  nlohmann::ordered_json metrics = nlohmann::ordered_json::object();
  for (const Metric& each : report.comparison.metrics) {
    metrics[each.name] = {{"float", each.float_value}, {"pruned", each.quantized}};
    if (each.confidence95) metrics[each.name]["confidence95"] = *each.confidence95;
  }
  return nlohmann::ordered_json{{"version", 1},
                                {"model", job.model},
                                {"output", report.file},
                                {"kind", "2:4"},
                                {"by", job.rule == PruneRule::kWanda ? "wanda" : "magnitude"},
                                {"metrics", metrics},
                                {"layers", layers}}
      .dump();
}

}  // namespace paddle::quant
