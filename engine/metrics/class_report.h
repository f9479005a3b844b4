#pragma once
// Details of a classification, for reports: the confusion matrix, precision and recall of
// each class, ROC and precision-recall curves, and the samples that were furthest from right.

#include <cstdint>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "metrics/metric.h"
#include "metrics/metric_state.h"
#include "metrics/score_layout.h"

namespace paddle::metrics {

struct ClassRow {
  int64_t support = 0;                                ///< labels of this class
  int64_t predicted = 0;                              ///< predictions of it
  double precision = 0, recall = 0, f1 = 0, iou = 0;  ///< 0 where the denominator is
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
  /// Classes. With several labels per sample: the label that is decided worst, and the decision, 0
  /// or 1.
  int64_t label = 0, predicted = 0;
  double probability = 0;  ///< of the label, or of what is true of it
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

  /// Whether each sample has several labels, which are decided one by one: `multilabel=true`.
  bool is_multilabel() const { return is_multilabel_; }
  int64_t classes() const;  ///< or labels of a sample
  int64_t rows() const;
  /// [label, prediction], row by row. Empty with several labels per sample.
  std::vector<int64_t> confusion() const;
  /// A row for each class, or for each label of the samples.
  std::vector<ClassRow> table() const;
  /// One curve for two classes, else one for each class against the rest or for each label, of at
  /// most `points` points. Empty where predictions are parts of samples, or if there were too many
  /// to keep.
  std::vector<RateCurve> curves(size_t points) const;
  /// The curve of the decisions about all classes together, where there are several curves.
  std::optional<RateCurve> micro_curve(size_t points) const;
  /// The worst `count` samples, the least probable label first. Empty where curves are.
  std::vector<WorstSample> worst(size_t count) const;

 private:
  enum Group : size_t { kSeen, kConfusion };
  enum SeenEntry : size_t { kRows, kUnkept };
  enum List : size_t { kIndices, kLabels, kProbabilities };
  /// Whether each row that was counted is in the lists.
  bool is_complete(int64_t classes) const;
  bool is_complete() const { return is_complete(classes()); }
  void add_row(const std::vector<double>& scores, int64_t label, int64_t classes, int64_t index);
  void add_labels(const ScoreRows& rows, std::span<const int64_t> indices);
  /// Counts a row, and keeps its index if all rows so far are in the lists. Returns whether they
  /// are.
  bool keep(int64_t index, int64_t classes);
  /// Whether class `c` is true of kept row `row`.
  bool is_true(size_t row, size_t c) const;
  /// The probabilities of a class over the kept rows, with what is true.
  void append_scored(size_t c, std::vector<std::pair<double, bool>>& out) const;

  MetricSpec spec_;
  bool is_multilabel_ = false;
  double threshold_ = 0;  ///< of scores that are decisions of their own
  int64_t ignored_ = 0;   ///< this label does not count
  MetricState state_;
};

}  // namespace paddle::metrics
