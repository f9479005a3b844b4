#include "metrics/classification.h"

namespace paddle::metrics {
namespace {

/// Precision, recall, F1 and intersection over union from counts per class. With `average` over all
/// classes that occur as a label or a prediction, otherwise of one class. With `multilabel` the
/// average is over labels, all of which count.
class PrecisionRecall final : public Classification {
 public:
  enum class Kind { kPrecision, kRecall, kF1, kIou };
  PrecisionRecall(const MetricSpec& spec, Kind kind)
      : Classification(spec),
        kind_(kind),
        average_(settings_.choice("average")),
        positive_(settings_.integer("positive").value_or(1)),
        by_label_(settings_.flag("multilabel") && !average_.empty()) {
    if (kind == Kind::kIou && average_.empty() && !settings_.given("positive")) average_ = "macro";
    if (!average_.empty() && settings_.given("positive"))
      fail(ErrorCode::kConfig, spec.name, ": give either average or positive");
  }
  std::string warning() const override { return threshold_warning(); }

 private:
  /// Groups of counts, each with an entry for a class or label.
  enum Outcome : size_t { kHits = kOwn, kFalsePositives, kMisses };

  struct Counts {
    double hits = 0, false_positives = 0, misses = 0;
    Counts& operator+=(const Counts& o) {
      hits += o.hits;
      false_positives += o.false_positives;
      misses += o.misses;
      return *this;
    }
    bool occurs() const { return hits + false_positives + misses > 0; }
  };

  void begin(int64_t classes, bool binary) override {
    if (by_label_) return;
    const int64_t decisions = binary ? 2 : classes;
    const std::string& name = settings_.spec().name;
    if (decisions > 2 && average_.empty() && !settings_.given("positive"))
      fail(ErrorCode::kConfig, name, ": ", classes,
           " classes need average=\"macro\", \"micro\" or \"weighted\", or positive=<class>");
    if (!binary && settings_.given("threshold"))
      fail(ErrorCode::kConfig, name, ": threshold is for one score per label, found ", classes,
           " classes");
    if (positive_ < 0 || positive_ >= decisions)
      fail(ErrorCode::kConfig, name, ": positive=", positive_, " is not a class in 0 … ",
           decisions - 1);
  }
  void add(const std::vector<double>& scores, int64_t label, bool binary) override {
    if (by_label_) {
      const auto at = static_cast<size_t>(column_);
      const bool is_predicted = scores[0] > threshold(), is_actual = label == 1;
      state_.count(kHits, at) += is_predicted && is_actual;
      state_.count(kFalsePositives, at) += is_predicted && !is_actual;
      state_.count(kMisses, at) += !is_predicted && is_actual;
      return;
    }
    const size_t predicted = binary ? scores[0] > threshold() : arg_max(scores);
    const auto actual = static_cast<size_t>(label);
    if (predicted == actual) {
      ++state_.count(kHits, actual);
    } else {
      ++state_.count(kFalsePositives, predicted);
      ++state_.count(kMisses, actual);
    }
  }
  Counts counts(size_t c) const {
    return {static_cast<double>(state_.count(kHits, c)),
            static_cast<double>(state_.count(kFalsePositives, c)),
            static_cast<double>(state_.count(kMisses, c))};
  }
  double of(const Counts& c) const {
    const auto ratio = [](double a, double b) { return b > 0 ? a / b : 0.0; };
    if (kind_ == Kind::kPrecision) return ratio(c.hits, c.hits + c.false_positives);
    if (kind_ == Kind::kRecall) return ratio(c.hits, c.hits + c.misses);
    if (kind_ == Kind::kIou) return ratio(c.hits, c.hits + c.false_positives + c.misses);
    return ratio(2 * c.hits, 2 * c.hits + c.false_positives + c.misses);
  }
  double value() const override {
    if (average_.empty()) return of(counts(static_cast<size_t>(positive_)));
    const size_t classes =
        std::max({state_.counts(kHits), state_.counts(kFalsePositives), state_.counts(kMisses)});
    if (average_ == "micro") {
      Counts sum;
      for (size_t c = 0; c < classes; ++c) sum += counts(c);
      return of(sum);
    }
    double sum = 0, weights = 0;
    for (size_t i = 0; i < classes; ++i) {
      const Counts c = counts(i);
      if (!by_label_ && !c.occurs()) continue;
      const double weight = average_ == "macro" ? 1 : c.hits + c.misses;
      sum += weight * of(c);
      weights += weight;
    }
    return weights > 0 ? sum / weights : kNaN;
  }
  Kind kind_;
  std::string average_;
  int64_t positive_;
  bool by_label_;
};

}  // namespace

std::unique_ptr<Metric> make_rate(const MetricSpec& spec) {
  using Kind = PrecisionRecall::Kind;
  if (spec.name == "precision") return std::make_unique<PrecisionRecall>(spec, Kind::kPrecision);
  if (spec.name == "recall") return std::make_unique<PrecisionRecall>(spec, Kind::kRecall);
  if (spec.name == "f1") return std::make_unique<PrecisionRecall>(spec, Kind::kF1);
  if (spec.name == "iou") return std::make_unique<PrecisionRecall>(spec, Kind::kIou);
  return nullptr;
}

}  // namespace paddle::metrics
