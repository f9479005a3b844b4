#include "metrics/classification.h"

namespace paddle::metrics {
namespace {

/// Whether a mask, which may be absent, counts an element.
bool counts(const Array& mask, int64_t i) { return !mask.storage || mask.data<double>()[i] != 0; }

/// Whether shapes may be equal, without regard to axes of size 1 after the first.
bool may_be_equal(const Shape& a, const Shape& b) {
  const auto flat = [](const Shape& s) {
    Shape out;
    for (size_t i = 0; i < s.size(); ++i)
      if (i == 0 || s[i].constant() != 1) out.push_back(s[i]);
    return out;
  };
  const Shape x = flat(a), y = flat(b);
  bool same = x.size() == y.size();
  for (size_t i = 0; same && i < x.size(); ++i) same = x[i].equals(y[i]) != false;
  return same;
}

/// A sum over a count.
class RatioMetric : public Metric {
 public:
  double result() const override {
    const int64_t below = state_.count(0, 0);
    return below > 0 ? state_.sum(0) / static_cast<double>(below) : kNaN;
  }

 protected:
  ExactSum& numerator() { return state_.sum(0); }
  int64_t& denominator() { return state_.count(0, 0); }
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
    const Array mask = mask_of(name_, operands);
    ExactSum& sum = numerator();
    for (int64_t i = 0; i < a.size(); ++i) {
      if (!counts(mask, i)) continue;
      const double d = a.data<double>()[i] - b.data<double>()[i];
      sum += squared_ ? d * d : std::abs(d);
      ++denominator();
    }
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
    const Array mask = mask_of("mape", operands);
    for (int64_t i = 0; i < operands[0].size(); ++i) {
      if (!counts(mask, i)) continue;
      ++denominator();
      const double label = operands[1].number(i);
      numerator() += std::abs((operands[0].number(i) - label) / label);
    }
  }
};

/// Coefficient of determination: 1 minus the squared errors over the squared deviations of the
/// labels from their mean.
class Determination final : public Metric {
 public:
  void update(const std::vector<Array>& operands, int64_t /*samples*/) override {
    check_regression_shapes("r2", to_shape(operands[0].shape), to_shape(operands[1].shape),
                            ErrorCode::kData);
    const Array mask = mask_of("r2", operands);
    for (int64_t i = 0; i < operands[0].size(); ++i) {
      if (!counts(mask, i)) continue;
      ++state_.count(0, 0);
      const double label = operands[1].number(i), error = operands[0].number(i) - label;
      state_.sum(kErrors) += error * error;
      state_.sum(kLabels) += label;
      state_.sum(kSquares).add_product(label, label);
      state_.note_largest(0, label);
      state_.note_largest(1, -label);
    }
  }
  double result() const override {
    if (!(state_.largest(0) > -state_.largest(1))) return kNaN;  // all labels are equal
    const double deviations = this->deviations();
    return deviations > 0 ? 1 - state_.sum(kErrors) / deviations : kNaN;
  }

 private:
  enum Sum : size_t { kErrors, kLabels, kSquares };

  /// The squared deviations from the mean, as (n Σ y² - (Σ y)²) / n. Most digits of the two terms
  /// may cancel, so both have twice the precision.
  double deviations() const {
    const auto n = static_cast<double>(state_.count(0, 0));
    const auto [sum, sum_rest] = state_.sum_parts(kLabels);
    const auto [squares, squares_rest] = state_.sum_parts(kSquares);
    const double scaled = n * squares, square = sum * sum;
    const double scaled_rest = std::fma(n, squares, -scaled) + n * squares_rest;
    const double square_rest = std::fma(sum, sum, -square) + 2 * sum * sum_rest;
    return ((scaled - square) + (scaled_rest - square_rest)) / n;
  }
};

/// Mean of a tensor's elements, for any quantity that the expression computes. A value of the whole
/// batch counts by the batch's samples.
class Average final : public RatioMetric {
 public:
  explicit Average(const MetricSpec& spec) : per_sample_(spec.per_sample) {}
  void update(const std::vector<Array>& operands, int64_t samples) override {
    const Array a = operands[0].cast(DType::kF64).contiguous();
    const double weight = per_sample_ ? 1 : static_cast<double>(samples);
    ExactSum& sum = numerator();
    for (int64_t i = 0; i < a.size(); ++i) sum += weight * a.data<double>()[i];
    denominator() += a.size() * (per_sample_ ? 1 : samples);
  }

 private:
  bool per_sample_;
};

}  // namespace

void check_regression_shapes(const std::string& name, const Shape& a, const Shape& b,
                             ErrorCode code) {
  if (!may_be_equal(a, b))
    fail(code, name, ": input ", text(a), " and label ", text(b),
         " must have the same shape, except for axes of size 1");
}

void check_mask_shape(const std::string& name, const Shape& mask, const Shape& labels,
                      ErrorCode code) {
  if (!may_be_equal(mask, labels))
    fail(code, name, ": expected one number for each label of ", text(labels), ", found ",
         text(mask));
}

Array mask_of(const std::string& metric, const std::vector<Array>& operands) {
  const size_t at = find_metric(metric)->operands.size();
  if (operands.size() <= at) return {};
  if (operands[at].size() != operands[1].size())
    fail(ErrorCode::kData, metric, ": a mask of ", operands[at].size(), " elements for ",
         operands[1].size(), " labels");
  return operands[at].cast(DType::kF64).contiguous();
}

std::unique_ptr<Metric> make_regression(const MetricSpec& spec) {
  if (spec.name == "mae" || spec.name == "rmse")
    return std::make_unique<MeanError>(spec, spec.name == "rmse");
  if (spec.name == "mape") return std::make_unique<MeanPercentage>();
  if (spec.name == "r2") return std::make_unique<Determination>();
  if (spec.name == "average") return std::make_unique<Average>(spec);
  return nullptr;
}

}  // namespace paddle::metrics
