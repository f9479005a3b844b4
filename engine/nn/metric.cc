#include "nn/metric.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace paddle::nn {
namespace {

/// Rows and classes of scores [..., classes]; one label per row.
struct Rows {
  Array scores, labels;
  int64_t rows, classes;
  Rows(const Array& s, const Array& l)
      : scores(s.cast(DType::kF64)),
        labels(l.cast(DType::kI64)),
        rows(labels.size()),
        classes(rows > 0 ? scores.size() / rows : 0) {
    if (rows > 0 && scores.size() % rows != 0)
      fail(ErrorCode::kData, "metric: ", scores.size(), " scores do not divide among ", rows,
           " labels");
  }
  const double* row(int64_t i) const { return scores.data<double>() + i * classes; }
  int64_t label(int64_t i) const { return labels.data<int64_t>()[i]; }
};

/// A ratio of two sums.
class RatioMetric : public Metric {
 public:
  void reset() override { numerator_ = denominator_ = 0; }
  void merge(const Metric& other) override {
    const auto& o = dynamic_cast<const RatioMetric&>(other);
    numerator_ += o.numerator_;
    denominator_ += o.denominator_;
  }
  double result() const override {
    return denominator_ > 0 ? numerator_ / denominator_ : std::numeric_limits<double>::quiet_NaN();
  }

 protected:
  double numerator_ = 0, denominator_ = 0;
};

class Accuracy final : public RatioMetric {
 public:
  explicit Accuracy(int64_t k) : k_(k) {}
  void update(const std::vector<Array>& arrays) override {
    const Rows r(arrays[0], arrays[1]);
    for (int64_t i = 0; i < r.rows; ++i) {
      const int64_t label = r.label(i);
      denominator_ += 1;
      if (r.classes == 1) {  // one score: positive if above zero
        numerator_ += (r.row(i)[0] > 0) == (label != 0);
        continue;
      }
      if (label < 0 || label >= r.classes) continue;  // counts as wrong
      // The label's rank: scores above it, and equal ones that stand before it.
      const double own = r.row(i)[label];
      int64_t above = 0;
      for (int64_t c = 0; c < r.classes; ++c)
        above += r.row(i)[c] > own || (r.row(i)[c] == own && c < label);
      numerator_ += above < k_ && !std::isnan(own);
    }
  }

 private:
  int64_t k_;
};

/// Counts of a binary decision; for several classes, of "is class `positive`".
class Decision : public Metric {
 public:
  enum class Kind { kPrecision, kRecall, kF1 };
  Decision(Kind kind, double threshold, int64_t positive)
      : kind_(kind), threshold_(threshold), positive_(positive) {}
  void reset() override { hit_ = false_alarm_ = miss_ = 0; }
  void update(const std::vector<Array>& arrays) override {
    const Rows r(arrays[0], arrays[1]);
    for (int64_t i = 0; i < r.rows; ++i) {
      bool predicted, actual;
      if (r.classes == 1) {
        predicted = r.row(i)[0] > threshold_;
        actual = r.label(i) != 0;
      } else {
        predicted = std::max_element(r.row(i), r.row(i) + r.classes) - r.row(i) == positive_;
        actual = r.label(i) == positive_;
      }
      hit_ += predicted && actual;
      false_alarm_ += predicted && !actual;
      miss_ += !predicted && actual;
    }
  }
  void merge(const Metric& other) override {
    const auto& o = dynamic_cast<const Decision&>(other);
    hit_ += o.hit_;
    false_alarm_ += o.false_alarm_;
    miss_ += o.miss_;
  }
  double result() const override {
    const auto ratio = [](double a, double b) { return b > 0 ? a / b : 0.0; };
    const double precision = ratio(hit_, hit_ + false_alarm_), recall = ratio(hit_, hit_ + miss_);
    if (kind_ == Kind::kPrecision) return precision;
    return kind_ == Kind::kRecall ? recall : ratio(2 * precision * recall, precision + recall);
  }

 private:
  Kind kind_;
  double threshold_;
  int64_t positive_;
  double hit_ = 0, false_alarm_ = 0, miss_ = 0;
};

/// Area under the ROC curve, exact: all scores are kept and ranked, ties sharing their rank.
class Auc final : public Metric {
 public:
  void reset() override { samples_.clear(); }
  void update(const std::vector<Array>& arrays) override {
    const Rows r(arrays[0], arrays[1]);
    for (int64_t i = 0; i < r.rows; ++i)
      samples_.push_back(
          {r.classes == 2 ? r.row(i)[1] - r.row(i)[0] : r.row(i)[r.classes - 1], r.label(i) != 0});
  }
  void merge(const Metric& other) override {
    const auto& o = dynamic_cast<const Auc&>(other);
    samples_.insert(samples_.end(), o.samples_.begin(), o.samples_.end());
  }
  double result() const override {
    auto sorted = samples_;
    std::sort(sorted.begin(), sorted.end());
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
    if (positives == 0 || negatives == 0) return std::numeric_limits<double>::quiet_NaN();
    return (rank_sum - positives * (positives + 1) / 2) / (positives * negatives);
  }

 private:
  std::vector<std::pair<double, bool>> samples_;
};

class MeanError final : public RatioMetric {
 public:
  explicit MeanError(bool squared) : squared_(squared) {}
  void update(const std::vector<Array>& arrays) override {
    const Array a = arrays[0].cast(DType::kF64), b = arrays[1].cast(DType::kF64);
    if (a.size() != b.size())
      fail(ErrorCode::kData, "metric: ", a.size(), " predictions for ", b.size(), " targets");
    for (int64_t i = 0; i < a.size(); ++i) {
      const double d = a.data<double>()[i] - b.data<double>()[i];
      numerator_ += squared_ ? d * d : std::abs(d);
    }
    denominator_ += static_cast<double>(a.size());
  }
  double result() const override {
    const double mean = RatioMetric::result();
    return squared_ ? std::sqrt(mean) : mean;
  }

 private:
  bool squared_;
};

/// exp of the mean negative log probability of the labels.
class Perplexity final : public RatioMetric {
 public:
  explicit Perplexity(int64_t ignore) : ignore_(ignore) {}
  void update(const std::vector<Array>& arrays) override {
    const Rows r(arrays[0], arrays[1]);
    for (int64_t i = 0; i < r.rows; ++i) {
      const int64_t label = r.label(i);
      if (label == ignore_) continue;
      if (label < 0 || label >= r.classes)
        fail(ErrorCode::kData, "perplexity: label ", label, " lies outside 0 … ", r.classes - 1);
      const double top = *std::max_element(r.row(i), r.row(i) + r.classes);
      double sum = 0;
      for (int64_t c = 0; c < r.classes; ++c) sum += std::exp(r.row(i)[c] - top);
      numerator_ += std::log(sum) + top - r.row(i)[label];
      denominator_ += 1;
    }
  }
  double result() const override { return std::exp(RatioMetric::result()); }

 private:
  int64_t ignore_;
};

/// Mean of a tensor's elements, for any quantity that the model computes.
class Mean final : public RatioMetric {
 public:
  void update(const std::vector<Array>& arrays) override {
    const Array a = arrays[0].cast(DType::kF64);
    for (int64_t i = 0; i < a.size(); ++i) numerator_ += a.data<double>()[i];
    denominator_ += static_cast<double>(a.size());
  }
};

}  // namespace

const std::vector<MetricInfo>& metric_infos() {
  static const std::vector<MetricInfo> kInfos = {
      {"accuracy", "Share of labels among the k highest scores.", {"input", "label"}, {{"k", 1}}},
      {"auc", "Area under the ROC curve, exact.", {"input", "label"}, {}},
      {"precision",
       "Hits among what was called positive.",
       {"input", "label"},
       {{"threshold", 0}, {"positive", 1}}},
      {"recall",
       "Hits among what is positive.",
       {"input", "label"},
       {{"threshold", 0}, {"positive", 1}}},
      {"f1",
       "Harmonic mean of precision and recall.",
       {"input", "label"},
       {{"threshold", 0}, {"positive", 1}}},
      {"mae", "Mean absolute error.", {"input", "label"}, {}},
      {"rmse", "Root of the mean squared error.", {"input", "label"}, {}},
      {"perplexity",
       "exp of the mean cross entropy.",
       {"input", "label"},
       {{"ignore_index", -100}}},
      {"average", "Mean of a tensor's elements.", {"input"}, {}},
  };
  return kInfos;
}

const MetricInfo* find_metric(const std::string& name) {
  for (const MetricInfo& m : metric_infos())
    if (m.name == name) return &m;
  return nullptr;
}

std::unique_ptr<Metric> make_metric(const std::string& name,
                                    const std::map<std::string, double>& options) {
  const MetricInfo* info = find_metric(name);
  if (!info) fail(ErrorCode::kConfig, "unknown metric '", name, "'");
  std::map<std::string, double> o(info->options.begin(), info->options.end());
  for (const auto& [key, value] : options) o[key] = value;
  const auto whole = [&](const char* key) { return static_cast<int64_t>(o.at(key)); };
  if (name == "accuracy") return std::make_unique<Accuracy>(whole("k"));
  if (name == "auc") return std::make_unique<Auc>();
  if (name == "mae") return std::make_unique<MeanError>(false);
  if (name == "rmse") return std::make_unique<MeanError>(true);
  if (name == "perplexity") return std::make_unique<Perplexity>(whole("ignore_index"));
  if (name == "average") return std::make_unique<Mean>();
  const auto kind = name == "precision" ? Decision::Kind::kPrecision
                    : name == "recall"  ? Decision::Kind::kRecall
                                        : Decision::Kind::kF1;
  return std::make_unique<Decision>(kind, o.at("threshold"), whole("positive"));
}

}  // namespace paddle::nn
