#include "train/evaluation/evaluator.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "metrics/interval.h"

namespace paddle::train {
namespace {

using metrics::kIntervalGroups;

constexpr size_t kWhole = kIntervalGroups;  ///< the entry of batches that were not divided

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

/// Whether the first axis of each operand consists of equally many rows for each sample.
bool has_rows(const std::vector<Array>& operands, int64_t samples) {
  return std::all_of(operands.begin(), operands.end(), [&](const Array& operand) {
    return !operand.shape.empty() && operand.shape[0] > 0 && operand.shape[0] % samples == 0;
  });
}

/// The rows of these samples, of a contiguous array with equally many rows for each of `samples`.
Array rows_of(const Array& whole, std::span<const int64_t> chosen, int64_t samples) {
  const int64_t rows = whole.shape[0] / samples;
  Dims shape = whole.shape;
  shape[0] = rows * static_cast<int64_t>(chosen.size());
  Array out = Array::zeros(whole.dtype, shape);
  const auto bytes = static_cast<size_t>(whole.size() / samples * item_size(whole.dtype));
  for (size_t i = 0; i < chosen.size(); ++i)
    std::memcpy(static_cast<std::byte*>(out.raw()) + i * bytes,
                static_cast<const std::byte*>(whole.raw()) + static_cast<size_t>(chosen[i]) * bytes,
                bytes);
  return out;
}

}  // namespace

Evaluator::Evaluator(const std::vector<MetricDefinition>& definitions,
                     const std::vector<MetricBinding>& bindings,
                     std::vector<data::TargetScale> scales)
    : definitions_(definitions) {
  for (const MetricDefinition& metric : definitions_)
    for (size_t i = 0; i < metric.calls.size(); ++i)
      at_metric(metric, [&] {
        const metrics::MetricSpec& spec = bindings.at(calls_.size()).spec;
        calls_.push_back({.metric = metrics::make_metric(spec),
                          .scale = std::move(scales.at(calls_.size())),
                          .per_sample = spec.per_sample,
                          .is_vector = spec.options.contains("axis") &&
                                       metrics::find_metric(spec.name)->is_reduction,
                          .groups = std::vector<metrics::MetricState>(kIntervalGroups),
                          .seen = {}});
      });
}

void Evaluator::read_texts(const data::Dataset& dataset,
                           const std::vector<MetricBinding>& bindings) {
  size_t at = 0;
  for (const MetricDefinition& metric : definitions_)
    for (size_t i = 0; i < metric.calls.size(); ++i, ++at) {
      const MetricBinding& binding = bindings.at(at);
      if (!metrics::find_metric(binding.spec.name)->compares_texts) continue;
      // Predicted tokens are all meant.
      const auto given = binding.spec.options.find("padding");
      const int64_t padding = binding.predicted != PredictedTokens::kNone ? -1
                              : given == binding.spec.options.end()
                                  ? 0
                                  : std::get<int64_t>(given->second);
      at_metric(metric, [&] { calls_[at].texts.emplace(dataset, binding.labels, padding); });
    }
}

template <class Use>
void Evaluator::for_each(const Use& use) const {
  size_t at = 0;
  for (const MetricDefinition& metric : definitions_) {
    use(metric, std::span(calls_).subspan(at, metric.calls.size()));
    at += metric.calls.size();
  }
}

void Evaluator::update(Call& call, const std::vector<Array>& operands,
                       std::span<const int64_t> indices) {
  const auto samples = static_cast<int64_t>(indices.size());
  const auto add = [&](size_t group, const std::vector<Array>& rows, int64_t count) {
    std::swap(call.metric->state(), call.groups[group]);
    call.metric->update(rows, count);
    std::swap(call.metric->state(), call.groups[group]);
  };
  if (!call.per_sample || !call.metric->divides() || !has_rows(operands, samples)) {
    call.seen.count(0, kWhole) += samples;
    return add(0, operands, samples);
  }
  std::vector<Array> whole;
  for (const Array& operand : operands) whole.push_back(operand.contiguous());
  std::array<std::vector<int64_t>, kIntervalGroups> members;
  for (int64_t i = 0; i < samples; ++i)
    members[metrics::interval_group(indices[static_cast<size_t>(i)])].push_back(i);
  for (size_t group = 0; group < kIntervalGroups; ++group) {
    if (members[group].empty()) continue;
    std::vector<Array> rows;
    for (const Array& operand : whole) rows.push_back(rows_of(operand, members[group], samples));
    add(group, rows, static_cast<int64_t>(members[group].size()));
    call.seen.count(0, group) += static_cast<int64_t>(members[group].size());
  }
}

void Evaluator::update_texts(Call& call, const Array& tokens, std::span<const int64_t> indices) {
  const std::vector<std::string> texts = call.texts->of_tokens(tokens);
  const std::vector<std::string> references = call.texts->references(indices);
  if (texts.size() != references.size())
    fail(ErrorCode::kData, "expected the tokens of ", references.size(), " samples, found ",
         texts.size(), " rows");
  auto& metric = dynamic_cast<metrics::TextMetric&>(*call.metric);
  for (size_t i = 0; i < texts.size(); ++i) {
    const size_t group = metrics::interval_group(indices[i]);
    std::swap(metric.state(), call.groups[group]);
    metric.add(texts[i], references[i]);
    std::swap(metric.state(), call.groups[group]);
    ++call.seen.count(0, group);
  }
}

void Evaluator::update(const EvaluationResult& batch, std::span<const int64_t> indices) {
  size_t at = 0;
  for (const MetricDefinition& metric : definitions_)
    for (size_t i = 0; i < metric.calls.size(); ++i, ++at) {
      const std::vector<Array>& operands = batch.metric_operands.at(at);
      const RowRange rows = batch.metric_rows.at(at);
      if (rows.count() == 0) continue;  // another rank counts them
      const auto own =
          indices.subspan(static_cast<size_t>(rows.begin), static_cast<size_t>(rows.count()));
      at_metric(metric, [&] {
        Call& call = calls_[at];
        if (call.texts) return update_texts(call, operands.at(0), own);
        if (call.scale.is_identity()) return update(call, operands, own);
        std::vector<Array> restored;
        // A prediction and its target, and perhaps a mask.
        for (size_t k = 0; k < operands.size(); ++k)
          restored.push_back(k < 2 ? call.scale.restored(operands[k]) : operands[k]);
        update(call, restored, own);
      });
    }
}

std::vector<metrics::MetricState*> Evaluator::states() {
  std::vector<metrics::MetricState*> out;
  for (Call& call : calls_) {
    for (metrics::MetricState& group : call.groups) out.push_back(&group);
    out.push_back(&call.seen);
  }
  return out;
}

const metrics::Metric& Evaluator::joined(const Call& call, size_t left_out) {
  call.metric->reset();
  for (size_t group = 0; group < kIntervalGroups; ++group)
    if (group != left_out) call.metric->merge(call.groups[group]);
  return *call.metric;
}

double Evaluator::value(const MetricDefinition& metric, std::span<const Call> calls,
                        size_t left_out) {
  std::vector<MetricResult> results;
  for (const Call& call : calls)
    results.push_back({joined(call, left_out).results(), call.is_vector});
  return metric.value(results);
}

std::vector<std::pair<std::string, double>> Evaluator::results() const {
  std::vector<std::pair<std::string, double>> out;
  for_each([&](const MetricDefinition& metric, std::span<const Call> calls) {
    out.emplace_back(metric.name, value(metric, calls, kWhole));
  });
  return out;
}

std::vector<double> Evaluator::values_without(const MetricDefinition& metric,
                                              std::span<const Call> calls) {
  // Each of the values below sorts or joins what a metric keeps.
  constexpr size_t kMaxKept = 500'000;
  for (const Call& call : calls) {
    size_t kept = 0;
    for (const metrics::MetricState& group : call.groups)
      for (size_t i = 0; i < group.lists(); ++i) kept += group.list(i).size();
    if (call.seen.count(0, kWhole) > 0 || kept > kMaxKept) return {};
  }
  std::vector<size_t> groups;
  for (size_t group = 0; group < kIntervalGroups; ++group)
    if (calls[0].seen.count(0, group) > 0) groups.push_back(group);
  if (groups.size() < metrics::kMinGroups) return {};
  std::vector<double> without;
  for (const size_t group : groups) without.push_back(value(metric, calls, group));
  return without;
}

std::vector<std::vector<double>> Evaluator::values_without() const {
  std::vector<std::vector<double>> out;
  for_each([&](const MetricDefinition& metric, std::span<const Call> calls) {
    out.push_back(values_without(metric, calls));
  });
  return out;
}

std::vector<std::string> Evaluator::warnings() const {
  std::vector<std::string> out;
  for_each([&](const MetricDefinition& metric, std::span<const Call> calls) {
    for (const Call& call : calls) {
      if (const std::string warning = joined(call, kWhole).warning(); !warning.empty())
        out.push_back(metric.where.location().text() + ": " + warning);
    }
  });
  return out;
}

}  // namespace paddle::train
