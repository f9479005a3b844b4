#include "quant/preparation.h"

#include <algorithm>
#include <filesystem>
#include <optional>

#include "base/files.h"
#include "quant/methods.h"
#include "quant/rounding.h"

namespace paddle::quant {
namespace {

namespace fs = std::filesystem;

const MethodStep* find_step(const QuantConfig& config, const char* name) {
  const auto found = std::find_if(config.methods.begin(), config.methods.end(),
                                  [&](const MethodStep& step) { return step.name == name; });
  return found == config.methods.end() ? nullptr : &*found;
}
bool has_step(const QuantConfig& config, const char* name) { return find_step(config, name); }

/// The integers of adaround: layer after layer, each fitted to what its predecessors in integers
/// give it. Deep models take several layers at a time.
size_t choose_in_order(Quantizable& model, const std::vector<size_t>& layers,
                       const BatchSource& source, const WeightSource& weight,
                       const CalibrationData::Deadline& deadline, const Progress& progress) {
  constexpr size_t kMaxStages = 32;
  const size_t each = (layers.size() + kMaxStages - 1) / kMaxStages;
  for (size_t begin = 0; begin < layers.size(); begin += each) {
    if (is_past(deadline)) return layers.size() - begin;
    const std::vector<size_t> stage(
        layers.begin() + static_cast<ptrdiff_t>(begin),
        layers.begin() + static_cast<ptrdiff_t>(std::min(layers.size(), begin + each)));
    progress({str("choosing integers: layer ", begin + 1, " of ", layers.size()),
              static_cast<int64_t>(begin), static_cast<int64_t>(layers.size())});
    for (const size_t i : stage) model.layers()[i].quantized = false;
    const auto moments = collect_paired_moments(model, stage, source, weight);
    for (size_t k = 0; k < stage.size(); ++k) {
      Layer& layer = model.layers()[stage[k]];
      layer.quantized = true;
      const WeightRows target =
          compensated(weight_rows(model.weight(stage[k]), layer.channel_axis()), moments[k]);
      // The descent ends near where it begins; what GPTQ rounds is a better place than the nearest.
      const QuantizedWeight start = gptq(target, layer.format.weights, moments[k].quantized);
      layer.weight =
          std::make_shared<QuantizedWeight>(descend(target, start, moments[k].quantized));
    }
  }
  return 0;
}

/// gptq, adaround and bias_correction, which need the moments of layer inputs.
void choose_integers(const QuantConfig& config, Quantizable& model, CalibrationData& data,
                     const WeightSource& weight, const CalibrationData::Deadline& deadline,
                     const Progress& progress, std::vector<std::string>& warnings) {
  const bool corrects = has_step(config, "bias_correction");
  const bool in_order = has_step(config, "adaround");
  const MethodStep* const gptq_step = find_step(config, "gptq");
  if (!corrects && !in_order && !gptq_step) return;
  std::vector<size_t> layers;
  for (size_t i = 0; i < model.layers().size(); ++i)
    if (can_collect_moments(model, i)) layers.push_back(i);
  const auto source = [&](const auto& use) { data.for_each(use); };
  size_t done = 0, left_out = 0;
  if (in_order) left_out = choose_in_order(model, layers, source, weight, deadline, progress);
  std::vector<std::pair<size_t, Moments>> for_biases;
  if (corrects || !in_order)
    collect_moments(model, layers, source, weight, [&](size_t i, const Moments& moments) {
      Layer& layer = model.layers()[i];
      if (!in_order && gptq_step) {
        if (is_past(deadline)) {
          ++left_out;
          return;
        }
        progress({str("choosing integers: layer ", done + 1, " of ", layers.size()),
                  static_cast<int64_t>(done), static_cast<int64_t>(layers.size())});
        ++done;
        layer.weight = std::make_shared<QuantizedWeight>(
            gptq(weight_rows(model.weight(i), layer.channel_axis()), layer.format.weights, moments,
                 gptq_step->damp));
      }
      if (corrects) for_biases.emplace_back(i, Moments{moments.features, {}, moments.mean});
    });
  for (const auto& [layer, moments] : for_biases) correct_bias(model, layer, moments);
  if (left_out > 0)
    warnings.push_back(str("the time limit left ", left_out, " of ", layers.size(),
                           " layers with their nearest integers"));
}

}  // namespace

void scale_weights(const QuantConfig& config, Quantizable& model, CalibrationData& data,
                   const WeightSource& weight, const Progress& progress,
                   std::vector<std::string>& warnings) {
  for (const MethodStep& step : config.methods) {
    int64_t count = -1;
    if (step.name == "equalize") {
      progress({"equalizing"});
      count = equalize(model);
    } else if (step.name == "smooth") {
      progress({"smoothing"});
      count = smooth(model, largest_features(model, layers_after_norms(model), data, weight),
                     step.alpha);
    } else if (step.name == "awq") {
      progress({"scaling weights"});
      std::vector<size_t> layers;
      for (const size_t i : layers_after_norms(model))
        if (can_collect_moments(model, i)) layers.push_back(i);
      std::vector<Moments> moments(model.layers().size());
      const auto source = [&](const auto& use) { data.for_each(use); };
      collect_moments(model, layers, source, weight,
                      [&](size_t layer, const Moments& found) { moments[layer] = found; });
      count = scale_by_activations(model, moments);
    }
    if (count == 0) warnings.push_back(step.name + ": found nothing to scale in this model");
  }
}

int64_t prepare(const QuantJob& job, Quantizable& model, const program::Model& source,
                const WeightSource& weight, const CalibrationData::Deadline& deadline,
                const Progress& progress, std::vector<std::string>& warnings,
                const std::string& begun) {
  const QuantConfig& config = job.config;
  CalibrationData data(source, job.calibration, config.samples, deadline);
  scale_weights(config, model, data, weight, progress, warnings);
  int64_t samples = 0;
  if (config.format.activations == ActivationMode::kStatic) {
    std::optional<Statistics> statistics;
    if (!config.statistics.empty() && file_exists(config.statistics)) {
      std::string reason;
      statistics = read_statistics(config.statistics, model, reason);
      if (!statistics) warnings.push_back(reason + "; they are made again");
    }
    if (!statistics) {
      statistics = collect_statistics(model, data, weight, progress, begun);
      if (!config.statistics.empty()) {
        if (const auto folder = fs::path(config.statistics).parent_path(); !folder.empty())
          ensure_directory(folder.string());
        write_statistics(config.statistics, model, *statistics);
      }
    }
    samples = statistics->samples;
    if (is_past(deadline))
      warnings.push_back(str("the time limit ended calibration after ", samples, " samples"));
    for (size_t i = 0; i < model.layers().size(); ++i)
      for (size_t k = 0; k < statistics->inputs[i].size(); ++k)
        model.layers()[i].ranges[k] =
            statistics->inputs[i][k].range(config.range, 256, config.percentile);
    for (const size_t i : model.rounded_results())
      model.layers()[i].result_range =
          statistics->results[i].range(config.range, 256, config.percentile);
    for (size_t i = model.top_level_layers(); i < model.layers().size(); ++i) {
      Layer& layer = model.layers()[i];
      if (!layer.quantized || statistics->inputs[i].empty() || !statistics->inputs[i][0].empty())
        continue;
      layer.quantized = false;
      layer.why = "the calibration data never reaches it";
    }
    if (samples < 32)
      warnings.push_back(str("calibration used ", samples,
                             " samples; ranges of so few may not hold for other inputs"));
  }
  choose_integers(config, model, data, weight, deadline, progress, warnings);
  for (const std::string& line : data.warnings()) warnings.push_back(line);
  return samples;
}

}  // namespace paddle::quant
