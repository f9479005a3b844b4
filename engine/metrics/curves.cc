#include <span>

#include "metrics/classification.h"
#include "metrics/probability_histogram.h"

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
    const auto negatives = state_.sorted(2 * curve), positives = state_.sorted(2 * curve + 1);
    return precision_ ? average_precision(negatives, positives) : roc_area(negatives, positives);
  }
  /// The share of pairs whose positive has the higher score; ties count half.
  static double roc_area(std::span<const double> negatives, std::span<const double> positives) {
    if (positives.empty() || negatives.empty()) return kNaN;
    double won = 0;
    size_t below = 0, equal = 0;  // negatives up to the score, and of those the ones with it
    for (size_t i = 0; i < positives.size();) {
      const double score = positives[i];
      size_t tied = 0;
      for (; i < positives.size() && positives[i] == score; ++i) ++tied;
      while (below < negatives.size() && negatives[below] < score) ++below;
      equal = 0;
      while (below + equal < negatives.size() && negatives[below + equal] == score) ++equal;
      won += static_cast<double>(tied) *
             (static_cast<double>(below) + 0.5 * static_cast<double>(equal));
    }
    return won / (static_cast<double>(positives.size()) * static_cast<double>(negatives.size()));
  }
  /// The sum of precisions, each times the recall that its threshold adds.
  static double average_precision(std::span<const double> negatives,
                                  std::span<const double> positives) {
    if (positives.empty()) return kNaN;
    const auto all = static_cast<double>(positives.size());
    double hits = 0, seen = 0, sum = 0;
    for (size_t p = positives.size(), n = negatives.size(); p > 0;) {
      const double score = positives[p - 1];
      for (; n > 0 && negatives[n - 1] >= score; --n) ++seen;
      double found = 0;
      for (; p > 0 && positives[p - 1] == score; --p) ++found;
      seen += found;
      hits += found;
      sum += found / all * (hits / seen);
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

/// The area of probabilities that are rounded down to buckets, whose number bounds the memory.
class BucketArea final : public Classification {
 public:
  explicit BucketArea(const MetricSpec& spec)
      : Classification(spec), histogram_(*settings_.integer("buckets")) {
    if (histogram_.buckets() < 2 || histogram_.buckets() > kMaxBuckets)
      fail(ErrorCode::kConfig, "auc: buckets must be from 2 to ", kMaxBuckets, ", found ",
           histogram_.buckets());
    if (settings_.flag("multilabel") || !settings_.choice("average").empty())
      fail(ErrorCode::kConfig, "auc: buckets are for one score per label");
  }
  bool divides() const override { return false; }

 private:
  static constexpr int64_t kMaxBuckets = 10'000'000;

  void begin(int64_t /*classes*/, bool binary) override {
    if (!binary)
      fail(ErrorCode::kConfig, "auc: buckets are for one score per label, found several classes");
  }
  void add(const std::vector<double>& scores, int64_t label, bool /*binary*/) override {
    histogram_.add(state_, kOwn, probability(settings_.spec(), scores[0]), label == 1);
  }
  double value() const override { return histogram_.area(state_, kOwn); }

  ProbabilityHistogram histogram_;
};

}  // namespace

std::unique_ptr<Metric> make_curve(const MetricSpec& spec) {
  if (spec.name == "auc" && Settings(spec).integer("buckets"))
    return std::make_unique<BucketArea>(spec);
  if (spec.name == "auc") return std::make_unique<CurveArea>(spec, false);
  if (spec.name == "average_precision") return std::make_unique<CurveArea>(spec, true);
  return nullptr;
}

}  // namespace paddle::metrics
