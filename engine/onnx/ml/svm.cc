// SVMClassifier and SVMRegressor of ai.onnx.ml: support vector machines as in LIBSVM, or linear
// models as in LIBLINEAR.

#include <algorithm>
#include <cmath>

#include "onnx/ml/classifier.h"
#include "onnx/ops/helpers.h"
#include "ops/generated/creation.h"
#include "ops/generated/linalg.h"

namespace paddle::onnx {
namespace {

std::vector<float> floats(const NodeCall& c, const char* name) {
  const auto values = c.floats_attr(name);
  return {values.begin(), values.end()};
}

/// K(x, v) for rows x and vectors v.
class Kernel {
 public:
  Kernel(const NodeCall& c, bool linear) {
    const std::string name = linear ? "LINEAR" : c.string_attr("kernel_type", "LINEAR");
    constexpr std::string_view kNames[] = {"LINEAR", "POLY", "RBF", "SIGMOID"};
    for (size_t i = 0; i < std::size(kNames); ++i)
      if (name == kNames[i]) kind_ = static_cast<int>(i);
    c.check(kind_ >= 0, "unknown kernel_type '", name, "'");
    const auto parameters = floats(c, "kernel_params");
    c.check(parameters.empty() || parameters.size() >= 3, "kernel_params has ", parameters.size(),
            " values, expected gamma, coef0 and degree");
    if (!parameters.empty()) {
      gamma_ = parameters[0];
      coef0_ = parameters[1];
      degree_ = parameters[2];
    }
  }
  /// [rows, vectors]
  Array of(const Array& x, const Array& vectors) const {
    const int64_t rows = x.shape[0], count = vectors.shape[0], width = x.shape[1];
    if (kind_ != 2) {
      const Array dots = ops::matmul(Tensor(x), Tensor(vectors), false, true).array().contiguous();
      if (kind_ == 0) return dots;
      Array out = Array::empty(DType::kF32, dots.shape);
      for (int64_t i = 0; i < dots.size(); ++i) {
        const float dot = gamma_ * dots.data<float>()[i] + coef0_;
        out.data<float>()[i] = kind_ == 1 ? std::pow(dot, degree_) : std::tanh(dot);
      }
      return out;
    }
    Array out = ops::zeros(Shape{Dim(rows), Dim(count)}, DType::kF32).array();
    for (int64_t r = 0; r < rows; ++r)
      for (int64_t v = 0; v < count; ++v) {
        const float *a = x.data<float>() + r * width, *b = vectors.data<float>() + v * width;
        float sum = 0;
        for (int64_t i = 0; i < width; ++i) sum += (a[i] - b[i]) * (a[i] - b[i]);
        out.data<float>()[r * count + v] = std::exp(-gamma_ * sum);
      }
    return out;
  }

 private:
  int kind_ = -1;
  float gamma_ = 0, coef0_ = 0, degree_ = 0;
};

/// Attribute `name` as `rows` vectors with the width of the features.
Array vectors_of(const NodeCall& c, const char* name, int64_t rows, const Array& x) {
  const auto values = floats(c, name);
  c.check(rows > 0 && x.shape[1] <= (int64_t{1} << 40) / rows &&
              static_cast<int64_t>(values.size()) == rows * x.shape[1],
          name, " has ", values.size(), " values for ", rows, " vectors of ", x.shape[1],
          " features");
  return Array::from(values, {rows, x.shape[1]});
}

/// Class probabilities from pairwise ones (T.-F. Wu et al., "Probability estimates for multi-class
/// classification by pairwise coupling", 2004, method 2).
std::vector<float> pairwise_coupling(size_t n, const std::vector<float>& pairs) {
  std::vector<float> q(n * n, 0), qp(n), p(n, 1.0f / static_cast<float>(n));
  for (size_t i = 0; i < n; ++i)
    for (size_t j = 0; j < n; ++j) {
      if (i == j) continue;
      q[i * n + i] += pairs[j * n + i] * pairs[j * n + i];
      q[i * n + j] = -pairs[j * n + i] * pairs[i * n + j];
    }
  const float enough = 0.005f / static_cast<float>(n);
  for (int iteration = 0; iteration < 100; ++iteration) {
    float pqp = 0, worst = 0;
    for (size_t i = 0; i < n; ++i) {
      qp[i] = 0;
      for (size_t j = 0; j < n; ++j) qp[i] += q[i * n + j] * p[j];
      pqp += p[i] * qp[i];
    }
    for (size_t i = 0; i < n; ++i) worst = std::max(worst, std::abs(qp[i] - pqp));
    if (worst < enough) break;
    for (size_t i = 0; i < n; ++i) {
      const float step = (pqp - qp[i]) / q[i * n + i];
      p[i] += step;
      pqp = (pqp + step * (step * q[i * n + i] + 2 * qp[i])) / (1 + step) / (1 + step);
      for (size_t j = 0; j < n; ++j) {
        qp[j] = (qp[j] + step * q[i * n + j]) / (1 + step);
        p[j] /= 1 + step;
      }
    }
  }
  return p;
}

/// One-versus-one classification by support vectors.
class PairClassifier {
 public:
  PairClassifier(const NodeCall& c, size_t classes)
      : classes_(classes),
        counts_(c.ints_attr("vectors_per_class")),
        coefficients_(floats(c, "coefficients")),
        rho_(floats(c, "rho")),
        a_(floats(c, "prob_a")),
        b_(floats(c, "prob_b")) {
    c.check(counts_.size() == classes, "vectors_per_class has ", counts_.size(), " numbers for ",
            classes, " classes");
    for (const int64_t n : counts_) {
      c.check(n >= 0 && n < int64_t{1} << 32, "vectors_per_class holds ", n);
      starts_.push_back(total_);
      total_ += n;
    }
    const size_t pairs = classes * (classes - 1) / 2;
    c.check(
        static_cast<int64_t>(coefficients_.size()) >= total_ * static_cast<int64_t>(classes - 1) &&
            rho_.size() >= pairs && a_.size() == b_.size() && (a_.empty() || a_.size() >= pairs),
        "coefficients, rho or prob_a and prob_b are too few for ", classes, " classes and ", total_,
        " vectors");
  }
  int64_t vectors() const { return total_; }
  bool has_probabilities() const { return !a_.empty(); }
  /// Scores of the pairs (0, 1), (0, 2), … and votes per class.
  std::vector<float> scores(const float* kernel, std::vector<int64_t>& votes) const {
    std::vector<float> out;
    for (size_t i = 0; i < classes_; ++i)
      for (size_t j = i + 1; j < classes_; ++j) {
        double sum = weighted_sum(kernel, j - 1, i) + weighted_sum(kernel, i, j);
        sum += static_cast<double>(rho_[out.size()]);
        out.push_back(static_cast<float>(sum));
        ++votes[sum > 0 ? i : j];
      }
    return out;
  }
  std::vector<float> probabilities(const std::vector<float>& scores) const {
    std::vector<float> pairs(classes_ * classes_, 0);
    size_t at = 0;
    for (size_t i = 0; i < classes_; ++i)
      for (size_t j = i + 1; j < classes_; ++j, ++at) {
        const float p = std::clamp(1 - logistic(scores[at] * a_[at] + b_[at]), 1e-7f, 1 - 1e-7f);
        pairs[i * classes_ + j] = p;
        pairs[j * classes_ + i] = 1 - p;
      }
    return pairwise_coupling(classes_, pairs);
  }

 private:
  /// Sum over the support vectors of a class, weighted by a row of coefficients.
  double weighted_sum(const float* kernel, size_t row, size_t of) const {
    const auto begin = static_cast<size_t>(starts_[of]);
    const float* weights = coefficients_.data() + row * static_cast<size_t>(total_) + begin;
    double sum = 0;
    for (size_t m = 0; m < static_cast<size_t>(counts_[of]); ++m)
      sum += static_cast<double>(weights[m] * kernel[begin + m]);
    return sum;
  }

  size_t classes_;
  std::vector<int64_t> counts_, starts_;
  std::vector<float> coefficients_, rho_, a_, b_;
  int64_t total_ = 0;
};

Values svm_classifier(NodeCall& c) {
  const Labels labels = Labels::of(c, "classlabels_strings", "classlabels_ints");
  const size_t classes = labels.size();
  c.check(classes >= 1 && classes < 65536, "there are ", classes, " classes");
  const PostTransform transform = post_transform(c);
  const Array x = feature_rows(c, 0);
  const int64_t rows = x.shape[0];
  const auto weights = floats(c, "coefficients");
  const bool positive = std::all_of(weights.begin(), weights.end(), [](float w) { return w >= 0; });
  const auto sizes = c.ints_attr("vectors_per_class");
  const bool linear = std::all_of(sizes.begin(), sizes.end(), [](int64_t n) { return n == 0; });
  const Kernel kernel(c, linear);
  std::vector<size_t> chosen;
  std::vector<float> all;
  size_t columns = classes;
  const auto add = [&](std::vector<float> scores, size_t best, SecondClass second) {
    apply_post_transform(scores, transform, second);
    columns = scores.size();
    all.insert(all.end(), scores.begin(), scores.end());
    chosen.push_back(best);
  };
  /// With two classes the sign of the score decides; otherwise the largest vote or probability.
  const auto pick = [&](float most, size_t best, bool probabilities) -> size_t {
    if (classes != 2 || probabilities) return best;
    return (positive && most >= 0.5f) || (!positive && most > 0) ? 1 : best;
  };
  if (linear) {
    const Array vectors = vectors_of(c, "coefficients", static_cast<int64_t>(classes), x);
    const auto rho = floats(c, "rho");
    c.check(!rho.empty(), "rho is missing");
    const Array raw = kernel.of(x, vectors);
    for (int64_t r = 0; r < rows; ++r) {
      std::vector<float> scores;
      for (size_t k = 0; k < classes; ++k)
        scores.push_back(raw.data<float>()[static_cast<size_t>(r) * classes + k] + rho[0]);
      const auto best = std::max_element(scores.begin(), scores.end());
      const auto index = static_cast<size_t>(best - scores.begin());
      const size_t winner = pick(*best, index, c.has_attribute("prob_a"));
      add(std::move(scores), winner, SecondClass::kNone);
    }
  } else {
    c.check(classes >= 2, "support vectors need at least two classes");
    const PairClassifier pairs(c, classes);
    const Array vectors = vectors_of(c, "support_vectors", pairs.vectors(), x);
    const Array kernels = kernel.of(x, vectors);
    const SecondClass second = classes > 2                         ? SecondClass::kNone
                               : transform == PostTransform::kNone ? SecondClass::kOpposite
                                                                   : SecondClass::kComplement;
    if (pairs.has_probabilities())
      columns = classes;
    else
      columns = classes > 2 ? classes * (classes - 1) / 2 : 2;
    for (int64_t r = 0; r < rows; ++r) {
      std::vector<int64_t> votes(classes, 0);
      auto scores = pairs.scores(kernels.data<float>() + r * pairs.vectors(), votes);
      const auto best =
          static_cast<size_t>(std::max_element(votes.begin(), votes.end()) - votes.begin());
      if (pairs.has_probabilities())
        add(pairs.probabilities(scores), best, SecondClass::kNone);
      else
        add(std::move(scores), best, second);
    }
  }
  return {labels.at(chosen), Tensor(Array::from(all, {rows, static_cast<int64_t>(columns)}))};
}

Values svm_regressor(NodeCall& c) {
  const int64_t count = c.int_attr("n_supports", 0);
  c.check(count >= 0 && count < int64_t{1} << 32, "n_supports is ", count);
  const PostTransform transform = post_transform(c);
  const Array x = feature_rows(c, 0);
  const auto rho = floats(c, "rho"), weights = floats(c, "coefficients");
  c.check(!rho.empty(), "rho is missing");
  const Kernel kernel(c, count == 0);
  const Array vectors = vectors_of(c, count == 0 ? "coefficients" : "support_vectors",
                                   std::max<int64_t>(count, 1), x);
  c.check(count == 0 || static_cast<int64_t>(weights.size()) >= count, "there are ", weights.size(),
          " coefficients for ", count, " vectors");
  const Array kernels = kernel.of(x, vectors);
  Array out = Array::empty(DType::kF32, {x.shape[0], 1});
  for (int64_t r = 0; r < x.shape[0]; ++r) {
    float sum = rho[0];
    const float* row = kernels.data<float>() + r * vectors.shape[0];
    for (int64_t v = 0; v < vectors.shape[0]; ++v)
      sum += count == 0 ? row[v] : row[v] * weights[static_cast<size_t>(v)];
    if (c.bool_attr("one_class", false)) sum = sum > 0 ? 1.0f : -1.0f;
    std::vector<float> score = {sum};
    apply_post_transform(score, transform);
    out.data<float>()[r] = score[0];
  }
  return {Tensor(out)};
}

}  // namespace

OperatorTable ml_svm_operators() {
  static constexpr Operator operators[] = {
      {"SVMClassifier", 1, svm_classifier},
      {"SVMRegressor", 1, svm_regressor},
  };
  return operators;
}

}  // namespace paddle::onnx
