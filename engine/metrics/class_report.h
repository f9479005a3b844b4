#pragma once
// Details of a classification, for reports: the confusion matrix, precision and recall of
// each class, ROC and precision-recall curves, and the samples that were furthest from right.

#include <cstdint>
#include <span>
#include <vector>

#include "metrics/metric.h"
#include "metrics/metric_state.h"

namespace paddle::metrics {

struct ClassRow {
  int64_t support = 0;                       ///< labels of this class
  int64_t predicted = 0;                     ///< predictions of it
  double precision = 0, recall = 0, f1 = 0;  ///< 0 where the denominator is
};

/// Points of a curve over falling thresholds.
struct RateCurve {
  std::vector<double> thresholds, false_positives, recalls, precisions;
  double area = 0;               ///< under the ROC curve; NaN if only one kind of label occurs
  double average_precision = 0;  ///< NaN without positives
};

/// A sample whose label the scores gave a small probability.
struct WorstSample {
  int64_t index = 0;  ///< in the dataset
  int64_t label = 0, predicted = 0;
  double probability = 0;  ///< of the label
};

class ClassReport {
 public:
  /// `spec`: of a metric that compares scores and labels (accuracy, f1, auc, …), with its layout.
  explicit ClassReport(MetricSpec spec);
  /// Whether the metric is of this kind.
  static bool is_possible(const MetricSpec& spec);

  /// Operands of one batch, and the numbers of its samples in the dataset. kData as the metric.
  void update(const std::vector<Array>& operands, std::span<const int64_t> indices);
  /// The state, to be merged with that of another report of the same metric.
  const MetricState& state() const { return state_; }
  MetricState& state() { return state_; }

  int64_t classes() const;
  int64_t rows() const;
  /// [label, prediction], row by row.
  std::vector<int64_t> confusion() const;
  std::vector<ClassRow> table() const;
  /// One curve for two classes, else one for each class against the rest, of at most `points`
  /// points. Empty where a sample has several labels, or if there were too many to keep.
  std::vector<RateCurve> curves(size_t points) const;
  /// The worst `count` samples, the least probable label first. Empty where curves are.
  std::vector<WorstSample> worst(size_t count) const;

 private:
  enum Group : size_t { kSeen, kConfusion };
  enum SeenEntry : size_t { kRows, kUnkept };
  enum List : size_t { kIndices, kLabels, kProbabilities };
  /// Whether each row that was counted is in the lists.
  bool is_complete() const;

  MetricSpec spec_;
  MetricState state_;
};

}  // namespace paddle::metrics
