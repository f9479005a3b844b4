#pragma once
// The metrics of a config over a validation set: accumulators for each call of a metric, and the
// values of the expressions around them, with confidence intervals.

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "data/target_scale.h"
#include "metrics/metric.h"
#include "train/evaluation/compared_texts.h"
#include "train/session/session.h"
#include "train/step/metric_call.h"

namespace paddle::train {

class Evaluator {
 public:
  /// `bindings` and `scales`: one for each call of `definitions`, in order. Errors of predictions
  /// are in the units of the data files, as `scales` restore them. `definitions` must outlive this
  /// object.
  Evaluator(const std::vector<MetricDefinition>& definitions,
            const std::vector<MetricBinding>& bindings, std::vector<data::TargetScale> scales);
  /// For metrics that compare texts: `dataset` has the samples of all batches and must outlive this
  /// object. kConfig, with the place of a metric, where its label is not a text.
  void read_texts(const data::Dataset& dataset, const std::vector<MetricBinding>& bindings);

  /// Operands of each call, of a batch, and the numbers of its samples in the dataset. Errors carry
  /// the place of the metric.
  void update(const EvaluationResult& batch, std::span<const int64_t> indices);
  /// The states of the accumulators, to be merged with those of other ranks.
  std::vector<metrics::MetricState*> states();
  /// Names and values in the order of the config.
  std::vector<std::pair<std::string, double>> results() const;
  /// In the order of the config: the values without each of the groups of samples that have any,
  /// for intervals (metrics/interval.h); empty for values of whole batches, few samples, and
  /// metrics that keep very many numbers.
  std::vector<std::vector<double>> values_without() const;
  /// Warnings about results, one line each.
  std::vector<std::string> warnings() const;

 private:
  /// A call of a metric. Samples are divided into groups (metrics/interval.h), each with a state;
  /// the value is that of all states together.
  struct Call {
    std::unique_ptr<metrics::Metric> metric;  ///< its own state is for use at the moment only
    data::TargetScale scale;
    std::optional<ComparedTexts> texts = {};  ///< of a metrics::TextMetric
    bool per_sample = true;
    bool is_vector = false;  ///< the result
    std::vector<metrics::MetricState> groups;
    /// Samples of each group, and in the last entry those of undivided batches.
    metrics::MetricState seen;
  };
  void update(Call& call, const std::vector<Array>& operands, std::span<const int64_t> indices);
  void update_texts(Call& call, const Array& tokens, std::span<const int64_t> indices);
  /// The metric with the states of all groups but one; `left_out` may be none of them.
  static const metrics::Metric& joined(const Call& call, size_t left_out);
  /// The value of an entry of `metrics:` over these groups.
  static double value(const MetricDefinition& metric, std::span<const Call> calls, size_t left_out);
  static std::vector<double> values_without(const MetricDefinition& metric,
                                            std::span<const Call> calls);
  /// Calls `use` with each definition and its calls.
  template <class Use>
  void for_each(const Use& use) const;

  const std::vector<MetricDefinition>& definitions_;
  std::vector<Call> calls_;
};

}  // namespace paddle::train
