#pragma once
// Probabilities with labels 0 and 1 as counts by bucket, for metrics of bounded memory.

#include "metrics/metric.h"

namespace paddle::metrics {

/// The probability that a score of one decision stands for. kData if it is not in [0, 1]; NaN for
/// NaN.
double probability(const MetricSpec& spec, double score);

/// Counts in two groups of a state, `group` of labels 0 and `group` + 1 of labels 1.
class ProbabilityHistogram {
 public:
  explicit ProbabilityHistogram(int64_t buckets) : buckets_(buckets) {}
  int64_t buckets() const { return buckets_; }
  void add(MetricState& state, size_t group, double probability, bool is_positive) const;
  /// The area under the ROC curve; NaN without both labels.
  double area(const MetricState& state, size_t group) const;
  /// Mean relative difference of actual and predicted rates, over runs of buckets with predicted
  /// rates that differ by at most 0.01 and are certain to 5%; 0 without such runs. The definition
  /// is PaddlePaddle's `bucket_error`.
  double error(const MetricState& state, size_t group) const;

 private:
  int64_t buckets_;
};

}  // namespace paddle::metrics
