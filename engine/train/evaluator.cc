#include "train/evaluator.h"

namespace paddle::train {
namespace {

/// Calls `part` and gives its errors the name and the place of the metric.
template <class F>
auto at_metric(const MetricDefinition& metric, F&& part) {
  try {
    return part();
  } catch (const Error& e) {
    if (!e.location().text().empty()) throw;
    throw Error(e.code(), "metric '" + metric.name + "': " + e.message(), metric.where.location());
  }
}

}  // namespace

Evaluator::Evaluator(const std::vector<MetricDefinition>& definitions,
                     const std::vector<MetricBinding>& bindings,
                     std::vector<data::TargetScale> scales)
    : definitions_(definitions), scales_(std::move(scales)) {
  for (const MetricDefinition& metric : definitions_)
    for (size_t i = 0; i < metric.calls.size(); ++i)
      at_metric(metric, [&] {
        accumulators_.push_back(metrics::make_metric(bindings.at(accumulators_.size()).spec));
        accumulators_.back()->reset();
      });
}

void Evaluator::update(const EvaluationResult& batch) {
  size_t at = 0;
  for (const MetricDefinition& metric : definitions_)
    for (size_t i = 0; i < metric.calls.size(); ++i, ++at) {
      const std::vector<Array>& operands = batch.metric_operands.at(at);
      const int64_t samples = batch.metric_rows.at(at).count();
      if (samples == 0) continue;  // another rank counts them
      at_metric(metric, [&] {
        if (scales_[at].is_identity()) return accumulators_[at]->update(operands, samples);
        std::vector<Array> restored;
        for (const Array& operand : operands) restored.push_back(scales_[at].restored(operand));
        accumulators_[at]->update(restored, samples);
      });
    }
}

std::vector<metrics::MetricState*> Evaluator::states() {
  std::vector<metrics::MetricState*> out;
  for (const auto& accumulator : accumulators_) out.push_back(&accumulator->state());
  return out;
}

std::vector<std::pair<std::string, double>> Evaluator::results() const {
  std::vector<std::pair<std::string, double>> out;
  size_t at = 0;
  for (const MetricDefinition& metric : definitions_) {
    std::vector<double> values;
    for (size_t i = 0; i < metric.calls.size(); ++i)
      values.push_back(accumulators_[at++]->result());
    out.emplace_back(metric.name, metric.value(values));
  }
  return out;
}

std::vector<std::string> Evaluator::doubts() const {
  std::vector<std::string> out;
  size_t at = 0;
  for (const MetricDefinition& metric : definitions_)
    for (size_t i = 0; i < metric.calls.size(); ++i)
      if (const std::string doubt = accumulators_[at++]->doubt(); !doubt.empty())
        out.push_back(metric.where.location().text() + ": " + doubt);
  return out;
}

}  // namespace paddle::train
