#pragma once
// How scores and labels of a classification metric correspond: which axis of the scores counts the
// classes, and which label belongs to which scores.

#include <optional>
#include <string>
#include <vector>

#include "metrics/metric.h"

namespace paddle::metrics {

/// The layout of scores [batch, classes, …] or [batch, …, classes] with labels of the same shape
/// without that axis (or with size 1 there), or of one score per label.
/// - `axis`: the class axis; without it, the last axis or axis 1, whichever fits.
/// - `multilabel`: scores and labels of equal shape are independent binary decisions.
/// Throws an error with `code` if nothing fits or if both axes surely do.
ScoreLayout score_layout(const std::string& metric, const Shape& scores, const Shape& labels,
                         std::optional<int64_t> axis, bool multilabel, ErrorCode code);

/// Scores and labels of a batch as rows.
class ScoreRows {
 public:
  /// kData for sizes that do not correspond.
  ScoreRows(const std::string& metric, const Array& scores, const Array& labels,
            const ScoreLayout& layout);
  int64_t rows() const { return labels_.size(); }
  int64_t classes() const { return classes_; }
  bool binary() const { return binary_; }
  double score(int64_t row, int64_t c) const {
    if (inner_ == 1) return scores_.data<double>()[row * classes_ + c];
    const int64_t outer = row / inner_, inner = row % inner_;
    return scores_.data<double>()[(outer * classes_ + c) * inner_ + inner];
  }
  /// All scores of a row.
  void scores(int64_t row, std::vector<double>& out) const;
  /// The label of a row; nullopt if it is `ignored`. kData for a value that is neither a class nor,
  /// with one score per label, 0 or 1.
  std::optional<int64_t> label(int64_t row, int64_t ignored) const;

 private:
  std::string metric_;
  Array scores_, labels_;  ///< float64, contiguous
  int64_t classes_ = 1, inner_ = 1;
  bool binary_ = false;
};

}  // namespace paddle::metrics
