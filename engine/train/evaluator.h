#pragma once
// The metrics of a config over a validation set: one accumulator for each call of a metric, and the
// values of the expressions around them.

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "data/target_scale.h"
#include "metrics/metric.h"
#include "train/metric_call.h"
#include "train/session.h"

namespace paddle::train {

class Evaluator {
 public:
  /// `bindings` and `scales`: one for each call of `definitions`, in order. Errors of predictions
  /// are in the units of the data files, as `scales` restore them. `definitions` must outlive this
  /// object.
  Evaluator(const std::vector<MetricDefinition>& definitions,
            const std::vector<MetricBinding>& bindings, std::vector<data::TargetScale> scales);

  /// Operands of each call, of a batch. Errors carry the place of the metric.
  void update(const EvaluationResult& batch);
  /// The states of the accumulators, to be merged with those of other ranks.
  std::vector<metrics::MetricState*> states();
  /// Names and values in the order of the config.
  std::vector<std::pair<std::string, double>> results() const;
  /// Reasons to doubt a result, one line each.
  std::vector<std::string> doubts() const;

 private:
  const std::vector<MetricDefinition>& definitions_;
  std::vector<data::TargetScale> scales_;
  std::vector<std::unique_ptr<metrics::Metric>> accumulators_;
};

}  // namespace paddle::train
