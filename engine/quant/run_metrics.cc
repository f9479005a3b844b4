#include "quant/run_metrics.h"

#include <algorithm>

#include "base/files.h"
#include "base/text.h"
#include "metrics/interval.h"
#include "quant/interruption.h"

namespace paddle::quant {
namespace {

constexpr const char* kLoss = "loss";

/// Warnings of the run were shown while it was trained.
class Silent final : public train::TrainObserver {};

train::LogLine evaluate(train::EvaluatedModel model, const std::string& data) {
  train::choose_evaluation_data(model.config, data, "--eval-data");
  train::settle_for_evaluation(model.config);
  // Models that were trained with quantization are compared with their floats; ONNX files have the
  // integers.
  if (model.config.quantization) model.options.allow_unused = {"*"};
  model.config.quantization.reset();
  model.config.distillation.reset();
  Silent silent;
  train::Trainer trainer(std::move(model.config), model.options, silent);
  trainer.prepare().require_fit();
  const auto line = trainer.evaluate();
  stop_if_interrupted();
  if (!line) fail(ErrorCode::kInternal, "the evaluation ended early");
  return *line;
}

Metric info_of(const train::MetricDefinition& metric) {
  Metric out{.name = metric.name, .is_of_config = true};
  const metrics::Direction direction = metric.direction();
  if (direction != metrics::Direction::kUnknown)
    out.higher_is_better = direction == metrics::Direction::kHigher;
  out.is_share = metric.arithmetic.statements.empty() && metric.calls.size() == 1 &&
                 metric.calls[0].metric == "accuracy";
  return out;
}

}  // namespace

std::unique_ptr<RunMetrics> RunMetrics::open(const std::string& model, const QuantConfig& config,
                                             const infer::InputOptions& data, std::string& reason) {
  std::unique_ptr<RunMetrics> out(new RunMetrics);
  out->model_ = model;
  out->data_ = data.data;
  if (is_directory(model))
    out->config_file_ = train::config_of_model(model);
  else if (model.ends_with(".onnx"))
    out->config_file_ = config.run_config;
  if (out->config_file_.empty()) {
    reason = model + ": has no config with metrics";
    return nullptr;
  }
  if (out->data_.empty()) {
    reason = "files have no labels; give train, valid, test or CONFIG.yaml[:part] as --eval-data";
    return nullptr;
  }
  const train::RunConfig run = train::read_config(out->config_file_, {});
  if (!run.models[0].name.empty()) {
    reason = out->config_file_ + ": has several models";
    return nullptr;
  }
  out->infos_ = {{.name = kLoss, .is_of_config = true, .higher_is_better = false}};
  for (const train::MetricDefinition& metric : run.metrics) out->infos_.push_back(info_of(metric));
  for (const MetricLimit& limit : config.accept.metrics) out->check(limit);
  return out;
}

void RunMetrics::check(const MetricLimit& limit) const {
  std::vector<std::string> names;
  for (const Metric& each : infos_) names.push_back(each.name);
  const auto found = std::find(names.begin(), names.end(), limit.metric);
  const std::string what = "quant.accept.metrics." + limit.metric;
  if (found == names.end())
    throw Error(ErrorCode::kConfig,
                str(what, ": ", config_file_, " has no such metric",
                    did_you_mean(limit.metric, names), "; it has ", join(names, ", ")),
                limit.where);
  if (limit.worse == MetricLimit::Worse::kAsMetric &&
      !infos_[static_cast<size_t>(found - names.begin())].higher_is_better)
    throw Error(ErrorCode::kConfig,
                what + ": whether higher is better is not known; expected {drop: …} or {rise: …}",
                limit.where);
}

std::vector<Metric> RunMetrics::compare(const std::string& onnx_file) {
  if (!float_)
    float_ = evaluate(is_directory(model_) ? train::open_evaluated_folder(model_, {})
                                           : train::open_evaluated_file(model_, config_file_, {}),
                      data_);
  const train::LogLine found =
      evaluate(train::open_evaluated_file(onnx_file, config_file_, {}), data_);
  std::vector<Metric> out = infos_;
  out[0].float_value = float_->loss;
  out[0].quantized = found.loss;
  for (size_t i = 0; i < found.metrics.size(); ++i) {
    Metric& metric = out.at(i + 1);
    metric.float_value = float_->metrics[i].second;
    metric.quantized = found.metrics[i].second;
    const std::vector<double>&a = float_->values_without[i], &b = found.values_without[i];
    if (a.size() != b.size()) continue;
    std::vector<double> differences;
    for (size_t k = 0; k < a.size(); ++k) differences.push_back(b[k] - a[k]);
    if (const auto interval =
            metrics::jackknife_interval(metric.quantized - metric.float_value, differences))
      metric.confidence95 = (interval->high - interval->low) / 2;
  }
  return out;
}

}  // namespace paddle::quant
