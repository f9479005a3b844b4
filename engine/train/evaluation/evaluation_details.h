#pragma once
// Details of an evaluation beyond its numbers, for reports and `paddle eval --details`: the
// confusion matrix, a table of the classes, curves, and the worst samples with their places.

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "data/dataset.h"
#include "metrics/class_report.h"
#include "train/session/session.h"
#include "train/step/metric_call.h"

namespace paddle::train {

class EvaluationDetails {
 public:
  /// Of the first metric that compares scores with classes; nothing is gathered without one.
  EvaluationDetails(const std::vector<MetricBinding>& bindings,
                    const std::vector<data::Field>& fields);
  bool empty() const { return !report_ || report_->rows() == 0; }
  /// Operands of each call of a metric, as Evaluator::update, and the numbers of the batch's
  /// samples in the dataset.
  void update(const EvaluationResult& batch, std::span<const int64_t> indices);
  /// The state of the report, to be merged with that of other ranks; null if there is none.
  metrics::MetricState* state() { return report_ ? &report_->state() : nullptr; }
  /// One JSON object: data, step, rows, classes (name, support, predicted, precision, recall, f1,
  /// iou), confusion [label][prediction], curves, micro_curve, worst (with a small picture where a
  /// field of the dataset is an image). `multilabel: true` replaces confusion where samples have
  /// several labels.
  std::string json(const std::string& data, int64_t step, const data::Dataset& dataset) const;

 private:
  size_t call_ = 0;
  std::optional<metrics::ClassReport> report_;
  std::vector<std::string> names_;  ///< of the classes, if they have any
};

}  // namespace paddle::train
