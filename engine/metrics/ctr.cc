// Measures of predicted click rates. Those of rates are exact sums; the area and the error by
// buckets are of a million buckets of probabilities, as PaddlePaddle's.

#include "metrics/classification.h"
#include "metrics/probability_histogram.h"

namespace paddle::metrics {
namespace {

constexpr int64_t kBuckets = 1'000'000;

class ClickRate final : public Classification {
 public:
  explicit ClickRate(const MetricSpec& spec)
      : Classification(spec), value_(settings_.choice("value")), histogram_(kBuckets) {}
  bool divides() const override { return !by_buckets(); }

 private:
  enum Sum : size_t { kErrors, kSquares, kClicks, kPredicted };

  bool by_buckets() const { return value_ == "auc" || value_ == "bucket_error"; }
  void begin(int64_t /*classes*/, bool binary) override {
    if (!binary)
      fail(ErrorCode::kConfig, "ctr: expected one score for each label, found several classes");
  }
  void add(const std::vector<double>& scores, int64_t label, bool /*binary*/) override {
    const double rate = probability(settings_.spec(), scores[0]);
    if (by_buckets()) return histogram_.add(state_, kOwn, rate, label == 1);
    if (std::isnan(rate)) return;
    const double error = rate - static_cast<double>(label);
    state_.sum(kErrors) += std::abs(error);
    state_.sum(kSquares) += error * error;
    state_.sum(kClicks) += static_cast<double>(label);
    state_.sum(kPredicted) += rate;
  }
  double value() const override {
    if (value_ == "auc") return histogram_.area(state_, kOwn);
    if (value_ == "bucket_error") return histogram_.error(state_, kOwn);
    const auto mean = [&](Sum sum) { return state_.sum(sum) / static_cast<double>(rows()); };
    if (value_ == "mae") return mean(kErrors);
    if (value_ == "rmse") return std::sqrt(mean(kSquares));
    if (value_ == "actual") return mean(kClicks);
    if (value_ == "predicted") return mean(kPredicted);
    return state_.sum(kClicks) / state_.sum(kPredicted);  // copc
  }

  std::string value_;
  ProbabilityHistogram histogram_;
};

}  // namespace

std::vector<std::string> ctr_values() {
  return {"auc", "bucket_error", "mae", "rmse", "actual", "predicted", "copc"};
}

std::unique_ptr<Metric> make_ctr(const MetricSpec& spec) {
  return std::make_unique<ClickRate>(spec);
}

}  // namespace paddle::metrics
