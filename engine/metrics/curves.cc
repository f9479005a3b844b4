#include "metrics/classification.h"

namespace paddle::metrics {
namespace {

/// Area under the ROC curve, or the average precision, exact: all scores are kept and ranked, those
/// of curve c as list 2 c (of negatives) and 2 c + 1 (of positives).
/// Several classes: the mean over the curves of one class against the rest, by probabilities. With
/// `multilabel` and `average` the mean over labels.
class CurveArea final : public Classification {
 public:
  CurveArea(const MetricSpec& spec, bool precision)
      : Classification(spec),
        precision_(precision),
        average_(settings_.choice("average")),
        by_label_(settings_.flag("multilabel") && !average_.empty()) {}

 private:
  using Curve = std::vector<std::pair<double, bool>>;  ///< score, and whether it is a positive

  void begin(int64_t classes, bool binary) override {
    if (!binary && classes > 2 && average_.empty())
      fail(ErrorCode::kConfig, settings_.spec().name, ": ", classes,
           " classes need average=\"macro\" or \"weighted\" (the mean over one class against the "
           "rest), found none");
  }
  void keep(size_t curve, double score, bool is_positive) {
    state_.list(2 * curve + (is_positive ? 1 : 0)).push_back(score);
  }
  void add(const std::vector<double>& scores, int64_t label, bool binary) override {
    if (binary) {
      keep(by_label_ ? static_cast<size_t>(column_) : 0, scores[0], label == 1);
    } else if (scores.size() == 2) {
      keep(0, scores[1] - scores[0], label == 1);
    } else {
      const bool logits = settings_.spec().scores == ScoreKind::kLogits;
      const double top = *std::max_element(scores.begin(), scores.end());
      double sum = 0;
      for (const double s : scores) sum += std::exp(s - top);
      for (size_t c = 0; c < scores.size(); ++c)
        keep(c, logits ? std::exp(scores[c] - top) / sum : scores[c],
             label == static_cast<int64_t>(c));
    }
  }
  /// NaN if the curve is not defined: no positives, or, for ROC, no negatives.
  double area(size_t curve) const {
    Curve sorted;
    for (const bool is_positive : {false, true})
      for (const double score : state_.list(2 * curve + (is_positive ? 1 : 0)))
        sorted.emplace_back(score, is_positive);
    std::sort(sorted.begin(), sorted.end());
    return precision_ ? average_precision(sorted) : roc_area(sorted);
  }
  /// Ties share their rank.
  static double roc_area(const Curve& sorted) {
    double positives = 0, rank_sum = 0;
    for (size_t i = 0; i < sorted.size();) {
      size_t end = i;
      while (end < sorted.size() && sorted[end].first == sorted[i].first) ++end;
      const double rank = 0.5 * static_cast<double>(i + 1 + end);
      for (; i < end; ++i)
        if (sorted[i].second) {
          positives += 1;
          rank_sum += rank;
        }
    }
    const double negatives = static_cast<double>(sorted.size()) - positives;
    if (positives == 0 || negatives == 0) return kNaN;
    return (rank_sum - positives * (positives + 1) / 2) / (positives * negatives);
  }
  /// The sum of precisions, each times the recall that its threshold adds.
  static double average_precision(const Curve& sorted) {
    const auto positives = static_cast<double>(
        std::count_if(sorted.begin(), sorted.end(), [](const auto& s) { return s.second; }));
    if (positives == 0) return kNaN;
    double hits = 0, seen = 0, sum = 0;
    for (size_t i = sorted.size(); i > 0;) {
      const double score = sorted[i - 1].first;
      double found = 0;
      for (; i > 0 && sorted[i - 1].first == score; --i) {
        found += sorted[i - 1].second;
        ++seen;
      }
      hits += found;
      sum += found / positives * (hits / seen);
    }
    return sum;
  }
  double value() const override {
    const size_t curves = (state_.lists() + 1) / 2;
    if (curves == 1) return area(0);
    double sum = 0, weights = 0;
    for (size_t c = 0; c < curves; ++c) {
      const double weight =
          average_ == "macro" ? 1 : static_cast<double>(state_.list(2 * c + 1).size());
      sum += weight * area(c);  // NaN if the class does not occur
      weights += weight;
    }
    return sum / weights;
  }
  bool precision_;
  std::string average_;
  bool by_label_;
};

}  // namespace

std::unique_ptr<Metric> make_curve(const MetricSpec& spec) {
  if (spec.name == "auc") return std::make_unique<CurveArea>(spec, false);
  if (spec.name == "average_precision") return std::make_unique<CurveArea>(spec, true);
  return nullptr;
}

}  // namespace paddle::metrics
