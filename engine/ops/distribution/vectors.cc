// Distributions whose outcomes are vectors, or chosen by a vector of probabilities.

#include "ops/distribution/kinds.h"
#include "ops/generated/indexing.h"
#include "ops/generated/linalg.h"
#include "ops/generated/math.h"
#include "ops/generated/nn.h"
#include "ops/generated/random.h"
#include "ops/generated/reduce.h"
#include "ops/generated/sampling.h"
#include "ops/generated/shape.h"
#include "ops/generated/sorting.h"

namespace paddle::distribution {

Tensor sum_last(const Tensor& x, int64_t rank) {
  if (rank <= 0) return x;
  std::vector<int64_t> axes;
  for (int64_t i = 1; i <= rank; ++i) axes.push_back(-i);
  return ops::sum(x, axes);
}

namespace {

using D = Distribution;
using T = Tensor;

Tensor kept_sum(const Tensor& x) {
  return ops::sum(x, std::vector<int64_t>{-1}, std::nullopt, true);
}

/// Weights as probabilities.
Tensor normalized(const Tensor& weights) { return weights / kept_sum(weights); }

Tensor choice_entropy(const Tensor& weights) {
  const Tensor p = normalized(weights);
  return -sum_last(x_log_y(p, p), 1);
}

Tensor chosen_log_prob(const D& d, const Tensor& value) {
  const Tensor log_p = ops::log(normalized(first(d)));
  const Tensor index = ops::cast(value, DType::kI64);
  // Outcomes and probabilities broadcast; the index takes one of each row.
  Shape row = log_p.shape();
  row.back() = 1;
  const Tensor spread = ops::cast(full_of(row, 0, DType::kI64), DType::kI64);
  const Tensor at = ops::unsqueeze(index, std::vector<int64_t>{-1}) + spread;
  Shape full = at.shape();
  full.back() = log_p.shape().back();
  return ops::squeeze(ops::take_along_axis(ops::expand(log_p, full), at, -1, false),
                      std::vector<int64_t>{-1});
}

/// A choice for each element of `shape`, which ends with the batch: the place of a uniform number
/// in the running sum of the probabilities.
Tensor choices(const D& d, const Tensor& weights, const Shape& shape) {
  Shape rows = shape;
  rows.push_back(weights.shape().back());
  const Tensor sums = ops::cumsum(ops::expand(normalized(weights), rows), -1);
  Shape one = shape;
  one.push_back(1);
  const Tensor u = ops::uniform(one, d.dtype() == DType::kF64 ? DType::kF64 : DType::kF32, 0, 1);
  // u < 1, and rounding may leave the last sum below it.
  const Tensor below = ops::less_equal(sums, ops::cast(u, sums.dtype()));
  const Tensor index = ops::sum(ops::cast(below, DType::kI64), std::vector<int64_t>{-1});
  return ops::minimum(index, dim_value(weights.shape().back() - 1, DType::kI64));
}

Tensor multinomial_draw(const D& d, const Shape& shape) {
  if (!d.trials()) d.reject("drawing needs total_count as a number");
  if (*d.trials() > (1 << 20)) d.reject("more than a million trials are not drawn");
  Shape trials(shape.begin(), shape.end() - 1);
  trials.insert(trials.begin(), Dim(*d.trials()));
  const Tensor picked = choices(d, second(d), trials);
  const Tensor each = ops::equal(ops::unsqueeze(picked, std::vector<int64_t>{-1}),
                                 range_of(shape.back(), DType::kI64));
  return ops::cast(ops::sum(ops::cast(each, DType::kI64), std::vector<int64_t>{0}), d.dtype());
}

Tensor multinomial_log_prob(const D& d, const Tensor& x) {
  const Tensor p = normalized(second(d));
  return ops::lgamma(sum_last(x, 1) + 1.0) - sum_last(ops::lgamma(x + 1.0), 1) +
         sum_last(x_log_y(x, p), 1);
}

/// n H(p) - log n! + sum_i E[log x_i!].
Tensor multinomial_entropy(const D& d) {
  if (!d.trials()) d.reject("the entropy needs total_count as a number");
  const int64_t n = *d.trials();
  if (n > (1 << 16)) d.reject("the entropy of more than 65536 trials is not computed");
  const Tensor p = normalized(second(d));
  Shape shape(static_cast<size_t>(p.ndim()) + 1, Dim(1));
  shape[0] = n + 1;
  const Tensor k = ops::reshape(range_of(Dim(n + 1), d.dtype()), shape);
  const auto count = static_cast<double>(n);
  const Tensor log_pmf = std::lgamma(count + 1) - ops::lgamma(k + 1.0) -
                         ops::lgamma(count - k + 1.0) + x_log_y(k, p + 0.0 * k) +
                         x_log_y(count - k, 1.0 - p + 0.0 * k);
  const Tensor expected =
      sum_last(ops::sum(ops::exp(log_pmf) * ops::lgamma(k + 1.0), std::vector<int64_t>{0}), 1);
  return count * choice_entropy(second(d)) - std::lgamma(count + 1) + expected;
}

// --- normal vectors: the parameters are the mean and the factor L of the covariance L L^T ---

Tensor half_log_det(const Tensor& factor) {
  return sum_last(ops::log(ops::diagonal(factor, 0, -2, -1)), 1);
}

/// |L^-1 diff|^2 of each vector.
Tensor mahalanobis(const Tensor& factor, const Tensor& diff) {
  Shape full = diff.shape();
  full.push_back(full.back());
  const Tensor solved = ops::triangular_solve(
      ops::expand(factor, full), ops::unsqueeze(diff, std::vector<int64_t>{-1}), false);
  return ops::squeeze(ops::sum(square_of(solved), std::vector<int64_t>{-2}),
                      std::vector<int64_t>{-1});
}

Tensor width_of(const D& d) { return dim_value(first(d).shape().back(), d.dtype()); }

std::vector<Kind> make_vector_kinds() {
  std::vector<Kind> out;
  out.push_back(
      {.name = "categorical",
       .parameters = {"probs"},
       .log_prob = chosen_log_prob,
       .entropy = [](const D& d) { return choice_entropy(first(d)); },
       .draw = [](const D& d, const Shape& shape) { return choices(d, first(d), shape); }});
  out.push_back({.name = "dirichlet",
                 .parameters = {"concentration"},
                 .event_rank = 1,
                 .log_prob =
                     [](const D& d, const T& x) {
                       const Tensor& a = first(d);
                       return sum_last(ops::log(x) * (a - 1.0), 1) + ops::lgamma(sum_last(a, 1)) -
                              sum_last(ops::lgamma(a), 1);
                     },
                 .entropy =
                     [](const D& d) {
                       const Tensor &a = first(d), sum = sum_last(a, 1);
                       return sum_last(ops::lgamma(a), 1) - ops::lgamma(sum) -
                              (width_of(d) - sum) * ops::digamma(sum) -
                              sum_last((a - 1.0) * ops::digamma(a), 1);
                     },
                 .mean = [](const D& d) { return normalized(first(d)); },
                 .variance =
                     [](const D& d) {
                       const Tensor &a = first(d), sum = kept_sum(a);
                       return a * (sum - a) / (sum * sum * (sum + 1.0));
                     },
                 .draw =
                     [](const D& d, const Shape& shape) {
                       return normalized(ops::standard_gamma(ops::expand(first(d), shape)));
                     },
                 .reparametrized = true});
  out.push_back({.name = "multinomial",
                 .parameters = {"total_count", "probs"},
                 .event_rank = 1,
                 .counts = true,
                 .log_prob = multinomial_log_prob,
                 .entropy = multinomial_entropy,
                 .mean = [](const D& d) { return first(d) * normalized(second(d)); },
                 .variance =
                     [](const D& d) {
                       const Tensor p = normalized(second(d));
                       return first(d) * p * (1.0 - p);
                     },
                 .draw = multinomial_draw});
  out.push_back(
      {.name = "multivariate_normal",
       .parameters = {"loc", "scale_tril"},
       .event_rank = 1,
       .log_prob =
           [](const D& d, const T& x) {
             return -0.5 * (width_of(d) * kLogTwoPi + mahalanobis(second(d), x - first(d))) -
                    half_log_det(second(d));
           },
       .entropy =
           [](const D& d) { return 0.5 * (1 + kLogTwoPi) * width_of(d) + half_log_det(second(d)); },
       .mean = [](const D& d) { return first(d) + 0.0; },
       .variance = [](const D& d) { return sum_last(square_of(second(d)), 1); },
       .draw =
           [](const D& d, const Shape& shape) {
             const Tensor noise = ops::unsqueeze(gaussian_of(d, shape), std::vector<int64_t>{-1});
             return first(d) +
                    ops::squeeze(ops::matmul(second(d), noise), std::vector<int64_t>{-1});
           },
       .reparametrized = true});
  return out;
}

}  // namespace

const std::vector<Kind>& vector_kinds() {
  static const std::vector<Kind> kinds = make_vector_kinds();
  return kinds;
}

}  // namespace paddle::distribution
