#include "metrics/classification.h"

namespace paddle::metrics {
namespace {

/// A ratio of two sums.
class RatioMetric : public Metric {
 public:
  void reset() override { numerator_ = denominator_ = 0; }
  void merge(const Metric& other) override {
    const auto& o = dynamic_cast<const RatioMetric&>(other);
    numerator_ += o.numerator_;
    denominator_ += o.denominator_;
  }
  double result() const override { return denominator_ > 0 ? numerator_ / denominator_ : kNaN; }

 protected:
  double numerator_ = 0, denominator_ = 0;
};

/// Mean absolute error, or the root of the mean squared one.
class MeanError final : public RatioMetric {
 public:
  MeanError(const MetricSpec& spec, bool squared) : name_(spec.name), squared_(squared) {}
  void update(const std::vector<Array>& operands, int64_t /*samples*/) override {
    check_regression_shapes(name_, to_shape(operands[0].shape), to_shape(operands[1].shape),
                            ErrorCode::kData);
    const Array a = operands[0].cast(DType::kF64).contiguous();
    const Array b = operands[1].cast(DType::kF64).contiguous();
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
  std::string name_;
  bool squared_;
};

/// Mean of |input - label| / |label|. Labels of 0 make it infinite.
class MeanPercentage final : public RatioMetric {
 public:
  void update(const std::vector<Array>& operands, int64_t /*samples*/) override {
    check_regression_shapes("mape", to_shape(operands[0].shape), to_shape(operands[1].shape),
                            ErrorCode::kData);
    for (int64_t i = 0; i < operands[0].size(); ++i) {
      const double label = operands[1].number(i);
      numerator_ += std::abs((operands[0].number(i) - label) / label);
    }
    denominator_ += static_cast<double>(operands[0].size());
  }
};

/// Coefficient of determination: 1 minus the squared errors over the squared deviations of the
/// labels from their mean.
class Determination final : public Metric {
 public:
  void reset() override { count_ = mean_ = deviations_ = errors_ = 0; }
  void update(const std::vector<Array>& operands, int64_t /*samples*/) override {
    check_regression_shapes("r2", to_shape(operands[0].shape), to_shape(operands[1].shape),
                            ErrorCode::kData);
    for (int64_t i = 0; i < operands[0].size(); ++i) {
      const double label = operands[1].number(i), error = operands[0].number(i) - label;
      errors_ += error * error;
      const double delta = label - mean_;  // Welford's update
      mean_ += delta / ++count_;
      deviations_ += delta * (label - mean_);
    }
  }
  void merge(const Metric& other) override {
    const auto& o = dynamic_cast<const Determination&>(other);
    const double count = count_ + o.count_, delta = o.mean_ - mean_;
    if (count == 0) return;
    deviations_ += o.deviations_ + delta * delta * count_ * o.count_ / count;
    mean_ += delta * o.count_ / count;
    errors_ += o.errors_;
    count_ = count;
  }
  double result() const override { return deviations_ > 0 ? 1 - errors_ / deviations_ : kNaN; }

 private:
  double count_ = 0, mean_ = 0, deviations_ = 0, errors_ = 0;
};

/// Mean of a tensor's elements, for any quantity that the expression computes. A value of the whole
/// batch counts by the batch's samples.
class Average final : public RatioMetric {
 public:
  explicit Average(const MetricSpec& spec) : per_sample_(spec.per_sample) {}
  void update(const std::vector<Array>& operands, int64_t samples) override {
    const Array a = operands[0].cast(DType::kF64).contiguous();
    const double weight = per_sample_ ? 1 : static_cast<double>(samples);
    for (int64_t i = 0; i < a.size(); ++i) numerator_ += weight * a.data<double>()[i];
    denominator_ += weight * static_cast<double>(a.size());
  }

 private:
  bool per_sample_;
};

/// Edits that turn sequences of predicted numbers into those of the labels, over the length of the
/// labels: the error rate of words or characters, whatever the numbers stand for.
class EditRate final : public RatioMetric {
 public:
  explicit EditRate(const MetricSpec& spec) {
    padding_ = Settings(spec).integer("padding").value_or(0);
  }
  void update(const std::vector<Array>& operands, int64_t /*samples*/) override {
    if (operands[0].shape.size() != 2 || operands[1].shape.size() != 2 ||
        operands[0].shape[0] != operands[1].shape[0])
      fail(ErrorCode::kData, "edit_rate: expected two arrays [batch, length] of numbers, found ",
           str(operands[0].shape), " and ", str(operands[1].shape));
    for (int64_t row = 0; row < operands[0].shape[0]; ++row) {
      const std::vector<double> a = sequence(operands[0], row), b = sequence(operands[1], row);
      numerator_ += static_cast<double>(distance(a, b));
      denominator_ += static_cast<double>(b.size());
    }
  }

 private:
  std::vector<double> sequence(const Array& array, int64_t row) const {
    std::vector<double> out;
    for (int64_t i = 0; i < array.shape[1]; ++i) {
      const double number = array.number(row * array.shape[1] + i);
      if (number != static_cast<double>(padding_) && number >= 0) out.push_back(number);
    }
    return out;
  }
  static size_t distance(const std::vector<double>& a, const std::vector<double>& b) {
    std::vector<size_t> row(b.size() + 1);
    for (size_t j = 0; j <= b.size(); ++j) row[j] = j;
    for (size_t i = 1; i <= a.size(); ++i) {
      size_t diagonal = std::exchange(row[0], i);
      for (size_t j = 1; j <= b.size(); ++j) {
        const size_t replaced = diagonal + (a[i - 1] != b[j - 1]);
        diagonal = row[j];
        row[j] = std::min({replaced, row[j] + 1, row[j - 1] + 1});
      }
    }
    return row[b.size()];
  }
  int64_t padding_ = 0;
};

}  // namespace

void check_regression_shapes(const std::string& name, const Shape& a, const Shape& b,
                             ErrorCode code) {
  const auto flat = [](const Shape& s) {
    Shape out;
    for (size_t i = 0; i < s.size(); ++i)
      if (i == 0 || s[i].constant() != 1) out.push_back(s[i]);
    return out;
  };
  const Shape x = flat(a), y = flat(b);
  bool same = x.size() == y.size();
  for (size_t i = 0; same && i < x.size(); ++i) same = x[i].equals(y[i]) != false;
  if (!same)
    fail(code, name, ": input ", text(a), " and label ", text(b),
         " must have the same shape, except for axes of size 1");
}

std::unique_ptr<Metric> make_regression(const MetricSpec& spec) {
  if (spec.name == "mae" || spec.name == "rmse")
    return std::make_unique<MeanError>(spec, spec.name == "rmse");
  if (spec.name == "mape") return std::make_unique<MeanPercentage>();
  if (spec.name == "r2") return std::make_unique<Determination>();
  if (spec.name == "average") return std::make_unique<Average>(spec);
  if (spec.name == "edit_rate") return std::make_unique<EditRate>(spec);
  return nullptr;
}

}  // namespace paddle::metrics
