// Distributions of counts and choices of single numbers.

#include "ops/distribution/kinds.h"
#include "ops/generated/complex.h"
#include "ops/generated/indexing.h"
#include "ops/generated/math.h"
#include "ops/generated/nn.h"
#include "ops/generated/random.h"
#include "ops/generated/reduce.h"
#include "ops/generated/sampling.h"
#include "ops/generated/shape.h"
#include "ops/generated/special.h"

namespace paddle::distribution {

Tensor x_log_y(const Tensor& x, const Tensor& y) {
  const Tensor zero = ops::equal(x, number(0.0));
  return ops::where(zero, x * 0.0, x * ops::log(ops::where(zero, ones_like(y), y)));
}

namespace {

using D = Distribution;
using T = Tensor;

/// Most trials of which an entropy is summed term by term.
constexpr int64_t kMaxTerms = 1 << 20;

/// 0, 1, …, count - 1 along a new first axis before `rank` others.
Tensor support(const D& d, int64_t count, int64_t rank) {
  Shape shape(static_cast<size_t>(rank) + 1, Dim(1));
  shape[0] = count;
  return ops::reshape(range_of(Dim(count), d.dtype()), shape);
}

Tensor entropy_of_terms(const Tensor& log_prob) {
  return -ops::sum(ops::exp(log_prob) * log_prob, std::vector<int64_t>{0});
}

Tensor log_choose(const Tensor& n, const Tensor& k) {
  return ops::lgamma(n + 1.0) - ops::lgamma(k + 1.0) - ops::lgamma(n - k + 1.0);
}

Tensor binomial_log_prob(const D& d, const Tensor& x) {
  const Tensor &n = first(d), &p = second(d);
  return log_choose(n, x) + x_log_y(x, p) + x_log_y(n - x, 1.0 - p);
}

Tensor binomial_entropy(const D& d) {
  if (!d.trials()) d.reject("the entropy needs total_count as a number");
  if (*d.trials() >= kMaxTerms)
    d.reject("the entropy of more than ", kMaxTerms, " trials is not computed");
  const auto rank = static_cast<int64_t>(d.batch_shape().size());
  return entropy_of_terms(binomial_log_prob(d, support(d, *d.trials() + 1, rank)));
}

/// Entropy of a Poisson distribution: by its terms up to a rate of 100 and by its asymptotic series
/// above, where both agree to the precision of float64.
Tensor poisson_entropy(const D& d) {
  constexpr double kSmall = 100;
  constexpr int64_t kTerms = 256;
  const Tensor& rate = first(d);
  const Tensor small = ops::less_equal(rate, number(kSmall));
  const Tensor low = ops::where(small, rate, number(1.0));
  const Tensor k = support(d, kTerms, rate.ndim());
  const Tensor terms = entropy_of_terms(x_log_y(k, low + 0.0 * k) - low - ops::lgamma(k + 1.0));
  const Tensor high = ops::where(small, full_of({}, kSmall, d.dtype()), rate);
  const Tensor r = ops::reciprocal(high);
  const Tensor series =
      0.5 * (ops::log(high) + (1 + kLogTwoPi)) -
      r * (1.0 / 12 + r * (1.0 / 24 + r * (19.0 / 360 + r * (9.0 / 80 + r * (863.0 / 2520)))));
  return ops::where(small, terms, series);
}

Tensor bernoulli_log_prob(const D& d, const Tensor& x) {
  return x_log_y(x, first(d)) + x_log_y(1.0 - x, 1.0 - first(d));
}

std::vector<Kind> make_discrete_kinds() {
  std::vector<Kind> out;
  out.push_back(
      {.name = "bernoulli",
       .parameters = {"probs"},
       .log_prob = bernoulli_log_prob,
       .entropy =
           [](const D& d) {
             const Tensor q = 1.0 - first(d);
             return -x_log_y(first(d), first(d)) - x_log_y(q, q);
           },
       .mean = [](const D& d) { return first(d) + 0.0; },
       .variance = [](const D& d) { return first(d) * (1.0 - first(d)); },
       .cdf =
           [](const D& d, const T& x) {
             const Tensor below =
                 ops::where(ops::less_than(x, number(0.0)), 0.0 * first(d), 1.0 - first(d));
             return ops::where(ops::less_than(x, number(1.0)), below, 0.0 * first(d) + 1.0);
           },
       .draw = [](const D& d,
                  const Shape& shape) { return ops::bernoulli(ops::expand(first(d), shape)); }});
  out.push_back({.name = "binomial",
                 .parameters = {"total_count", "probs"},
                 .counts = true,
                 .log_prob = binomial_log_prob,
                 .entropy = binomial_entropy,
                 .mean = [](const D& d) { return first(d) * second(d); },
                 .variance = [](const D& d) { return first(d) * second(d) * (1.0 - second(d)); },
                 .draw =
                     [](const D& d, const Shape& shape) {
                       return ops::cast(ops::binomial(ops::expand(first(d), shape),
                                                      ops::expand(second(d), shape)),
                                        d.dtype());
                     }});
  out.push_back(
      {.name = "geometric",
       .parameters = {"probs"},
       .log_prob = [](const D& d,
                      const T& x) { return x_log_y(x, 1.0 - first(d)) + ops::log(first(d)); },
       .entropy =
           [](const D& d) {
             const Tensor &p = first(d), q = 1.0 - p;
             return -(x_log_y(q, q) + x_log_y(p, p)) / p;
           },
       .mean = [](const D& d) { return ops::reciprocal(first(d)) - 1.0; },
       .variance = [](const D& d) { return (ops::reciprocal(first(d)) - 1.0) / first(d); },
       .cdf =
           [](const D& d, const T& x) {
             const Tensor tail = ops::exp((ops::floor(x) + 1.0) * ops::log1p(-first(d)));
             return ops::where(ops::less_than(x, number(0.0)), 0.0 * tail, 1.0 - tail);
           },
       .draw =
           [](const D& d, const Shape& shape) {
             const Tensor u = uniform_of(d, shape);
             return ops::floor(ops::log1p(-u) / ops::log1p(-first(d)));
           }});
  out.push_back(
      {.name = "poisson",
       .parameters = {"rate"},
       .log_prob =
           [](const D& d, const T& x) {
             return x_log_y(x, first(d)) - first(d) - ops::lgamma(x + 1.0);
           },
       .entropy = poisson_entropy,
       .mean = [](const D& d) { return first(d) + 0.0; },
       .variance = [](const D& d) { return first(d) + 0.0; },
       .cdf =
           [](const D& d, const T& x) {
             const Tensor k = ops::floor(x);
             const Tensor at_least = ops::gammaincc(ops::maximum(k, number(0.0)) + 1.0, first(d));
             return ops::where(ops::less_than(x, number(0.0)), 0.0 * at_least, at_least);
           },
       .draw = [](const D& d,
                  const Shape& shape) { return ops::poisson(ops::expand(first(d), shape)); }});
  return out;
}

}  // namespace

const std::vector<Kind>& discrete_kinds() {
  static const std::vector<Kind> kinds = make_discrete_kinds();
  return kinds;
}

}  // namespace paddle::distribution
