// Continuous distributions of single numbers.

#include "ops/distribution/kinds.h"
#include "ops/generated/complex.h"
#include "ops/generated/indexing.h"
#include "ops/generated/math.h"
#include "ops/generated/nn.h"
#include "ops/generated/random.h"
#include "ops/generated/sampling.h"
#include "ops/generated/shape.h"
#include "ops/generated/special.h"

namespace paddle::distribution {

Tensor uniform_of(const Distribution& d, const Shape& shape) {
  return ops::uniform(shape, d.dtype(), 0.0, 1.0);
}

Tensor gaussian_of(const Distribution& d, const Shape& shape) {
  return ops::gaussian(shape, 0.0, 1.0, 0, d.dtype());
}

Tensor where_or(const Tensor& condition, const Tensor& x, double otherwise) {
  return ops::where(condition, x, number(otherwise));
}

Tensor square_of(const Tensor& x) { return x * x; }

namespace {

using std::numbers::pi;
using D = Distribution;
using T = Tensor;

/// (value - loc) / scale.
Tensor standard(const D& d, const Tensor& x) { return (x - first(d)) / second(d); }

/// Exponential numbers of rate 1: -log(1 - u) for u in [0, 1).
Tensor exponential_of(const D& d, const Shape& shape) { return -ops::log1p(-uniform_of(d, shape)); }

/// Gamma numbers with shape parameters of the given tensor.
Tensor gamma_of(const Tensor& concentration, const Shape& shape) {
  return ops::standard_gamma(ops::expand(concentration, shape));
}

Tensor gamma_log_prob(const Tensor& a, const Tensor& rate, const Tensor& x) {
  return a * ops::log(rate) + (a - 1.0) * ops::log(x) - rate * x - ops::lgamma(a);
}

Tensor gamma_entropy(const Tensor& a, const Tensor& rate) {
  return a - ops::log(rate) + ops::lgamma(a) + (1.0 - a) * ops::digamma(a);
}

Tensor log_beta(const Tensor& a, const Tensor& b) {
  return ops::lgamma(a) + ops::lgamma(b) - ops::lgamma(a + b);
}

Tensor normal_log_prob(const D& d, const Tensor& x) {
  return -0.5 * square_of(standard(d, x)) - ops::log(second(d)) - 0.5 * kLogTwoPi;
}

/// Below, the closed forms cancel; the Taylor expansions around 1/2 take over.
struct NearHalf {
  Tensor far;  ///< where the closed form holds
  Tensor p;    ///< the probabilities there, a harmless one elsewhere
  Tensor from_half;

  explicit NearHalf(const Tensor& probs) : from_half(probs - 0.5) {
    far = ops::greater_than(ops::abs(from_half), number(0.001));
    p = ops::where(far, probs, number(0.499));
  }
  Tensor choose(const Tensor& closed, const Tensor& near) const {
    return ops::where(far, closed, near);
  }
};

/// log of the constant that makes p^x (1-p)^(1-x) integrate to 1 over [0, 1].
Tensor log_constant(const Tensor& probs) {
  const NearHalf h(probs);
  const Tensor odds = ops::log1p(-h.p) - ops::log(h.p);
  const Tensor closed = ops::log(ops::abs(odds)) - ops::log(ops::abs(1.0 - 2.0 * h.p));
  const Tensor x = square_of(h.from_half);
  return h.choose(closed, std::numbers::ln2 + (4.0 / 3.0 + 104.0 / 45.0 * x) * x);
}

Tensor continuous_bernoulli_mean(const D& d) {
  const NearHalf h(first(d));
  const Tensor closed = h.p / (2.0 * h.p - 1.0) + 1.0 / (ops::log1p(-h.p) - ops::log(h.p));
  return h.choose(closed, 0.5 + (1.0 / 3.0 + 16.0 / 45.0 * square_of(h.from_half)) * h.from_half);
}

Tensor continuous_bernoulli_variance(const D& d) {
  const NearHalf h(first(d));
  const Tensor closed = h.p * (h.p - 1.0) / square_of(1.0 - 2.0 * h.p) +
                        1.0 / square_of(ops::log1p(-h.p) - ops::log(h.p));
  const Tensor x = square_of(h.from_half);
  return h.choose(closed, 1.0 / 12.0 - (1.0 / 15.0 - 128.0 / 945.0 * x) * x);
}

Tensor continuous_bernoulli_cdf(const D& d, const Tensor& value) {
  const NearHalf h(first(d));
  const Tensor x = ops::clip(value, 0.0, 1.0);
  const Tensor closed =
      (ops::exp(x * ops::log(h.p) + (1.0 - x) * ops::log1p(-h.p)) + h.p - 1.0) / (2.0 * h.p - 1.0);
  return h.choose(closed, x + closed * 0.0);
}

Tensor continuous_bernoulli_icdf(const D& d, const Tensor& u) {
  const NearHalf h(first(d));
  const Tensor low = ops::log1p(-h.p);
  const Tensor closed = (ops::log1p(-h.p + u * (2.0 * h.p - 1.0)) - low) / (ops::log(h.p) - low);
  return h.choose(closed, u + closed * 0.0);
}

Tensor student_variance(const D& d) {
  const Tensor& df = first(d);
  const Tensor finite = ops::greater_than(df, number(2.0));
  const Tensor var = square_of(d.parameter(2)) * df / ops::where(finite, df - 2.0, number(1.0));
  const Tensor rest = ops::where(ops::greater_than(df, number(1.0)),
                                 full_of({}, INFINITY, d.dtype()), full_of({}, NAN, d.dtype()));
  return ops::where(finite, var, rest);
}

Tensor student_entropy(const D& d) {
  const Tensor &df = first(d), half = 0.5 * df, more = half + 0.5;
  return ops::log(d.parameter(2)) + more * (ops::digamma(more) - ops::digamma(half)) +
         0.5 * ops::log(df) + ops::lgamma(half) + 0.5 * std::log(pi) - ops::lgamma(more);
}

Tensor student_log_prob(const D& d, const Tensor& x) {
  const Tensor &df = first(d), y = (x - second(d)) / d.parameter(2);
  const Tensor norm = ops::log(d.parameter(2)) + 0.5 * ops::log(df) + 0.5 * std::log(pi) +
                      ops::lgamma(0.5 * df) - ops::lgamma(0.5 * df + 0.5);
  return -0.5 * (df + 1.0) * ops::log1p(square_of(y) / df) - norm;
}

Tensor student_draw(const D& d, const Shape& shape) {
  const Tensor& df = first(d);
  const Tensor spread = ops::rsqrt(2.0 * gamma_of(0.5 * df, shape) / df);
  return second(d) + d.parameter(2) * gaussian_of(d, shape) * spread;
}

Tensor beta_draw(const D& d, const Shape& shape) {
  const Tensor a = gamma_of(first(d), shape);
  return a / (a + gamma_of(second(d), shape));
}

Tensor uniform_log_prob(const D& d, const Tensor& x) {
  const Tensor inside =
      ops::logical_and(ops::greater_equal(x, first(d)), ops::less_equal(x, second(d)));
  const Tensor density = -ops::log(second(d) - first(d));
  return ops::where(inside, density + 0.0 * x, full_of({}, -INFINITY, d.dtype()));
}

/// Of a median and a scale: -1 to 1 from the left to the right end.
Tensor laplace_draw(const D& d, const Shape& shape) {
  const Tensor u = 2.0 * uniform_of(d, shape) - 1.0;
  // u = -1 would be an infinite outcome.
  const Tensor inner = ops::clip(ops::abs(u), 0.0, d.dtype() == DType::kF64 ? 1 - 1e-16 : 1 - 6e-8);
  return first(d) - second(d) * ops::sign(u) * ops::log1p(-inner);
}

std::vector<Kind> make_continuous_kinds() {
  std::vector<Kind> out;
  out.push_back({.name = "beta",
                 .parameters = {"alpha", "beta"},
                 .log_prob =
                     [](const D& d, const T& x) {
                       return (first(d) - 1.0) * ops::log(x) + (second(d) - 1.0) * ops::log1p(-x) -
                              log_beta(first(d), second(d));
                     },
                 .entropy =
                     [](const D& d) {
                       const Tensor &a = first(d), &b = second(d), sum = a + b;
                       return log_beta(a, b) - (a - 1.0) * ops::digamma(a) -
                              (b - 1.0) * ops::digamma(b) + (sum - 2.0) * ops::digamma(sum);
                     },
                 .mean = [](const D& d) { return first(d) / (first(d) + second(d)); },
                 .variance =
                     [](const D& d) {
                       const Tensor sum = first(d) + second(d);
                       return first(d) * second(d) / (sum * sum * (sum + 1.0));
                     },
                 .draw = beta_draw,
                 .reparametrized = true});
  out.push_back({.name = "cauchy",
                 .parameters = {"loc", "scale"},
                 .log_prob =
                     [](const D& d, const T& x) {
                       return -ops::log1p(square_of(standard(d, x))) - std::log(pi) -
                              ops::log(second(d));
                     },
                 .entropy = [](const D& d) { return ops::log(second(d)) + std::log(4 * pi); },
                 .cdf = [](const D& d, const T& x) { return ops::atan(standard(d, x)) / pi + 0.5; },
                 .icdf = [](const D& d,
                            const T& u) { return first(d) + second(d) * ops::tan(pi * (u - 0.5)); },
                 .draw =
                     [](const D& d, const Shape& shape) {
                       return first(d) + second(d) * ops::tan(pi * (uniform_of(d, shape) - 0.5));
                     },
                 .reparametrized = true});
  out.push_back(
      {.name = "chi2",
       .parameters = {"df"},
       .log_prob =
           [](const D& d, const T& x) {
             return gamma_log_prob(0.5 * first(d), full_of({}, 0.5, d.dtype()), x);
           },
       .entropy =
           [](const D& d) { return gamma_entropy(0.5 * first(d), full_of({}, 0.5, d.dtype())); },
       .mean = [](const D& d) { return first(d) + 0.0; },
       .variance = [](const D& d) { return 2.0 * first(d); },
       .cdf = [](const D& d, const T& x) { return ops::gammainc(0.5 * first(d), 0.5 * x); },
       .draw = [](const D& d, const Shape& shape) { return 2.0 * gamma_of(0.5 * first(d), shape); },
       .reparametrized = true});
  out.push_back({.name = "continuous_bernoulli",
                 .parameters = {"probs"},
                 .log_prob =
                     [](const D& d, const T& x) {
                       return x * ops::log(first(d)) + (1.0 - x) * ops::log1p(-first(d)) +
                              log_constant(first(d));
                     },
                 .entropy =
                     [](const D& d) {
                       const Tensor low = ops::log1p(-first(d));
                       return continuous_bernoulli_mean(d) * (low - ops::log(first(d))) - low -
                              log_constant(first(d));
                     },
                 .mean = continuous_bernoulli_mean,
                 .variance = continuous_bernoulli_variance,
                 .cdf = continuous_bernoulli_cdf,
                 .icdf = continuous_bernoulli_icdf,
                 .draw =
                     [](const D& d, const Shape& shape) {
                       return continuous_bernoulli_icdf(d, uniform_of(d, shape));
                     },
                 .reparametrized = true});
  out.push_back(
      {.name = "exponential",
       .parameters = {"rate"},
       .log_prob = [](const D& d, const T& x) { return ops::log(first(d)) - first(d) * x; },
       .entropy = [](const D& d) { return 1.0 - ops::log(first(d)); },
       .mean = [](const D& d) { return ops::reciprocal(first(d)); },
       .variance = [](const D& d) { return ops::reciprocal(square_of(first(d))); },
       .cdf = [](const D& d, const T& x) { return -ops::expm1(-first(d) * x); },
       .icdf = [](const D& d, const T& u) { return -ops::log1p(-u) / first(d); },
       .draw = [](const D& d, const Shape& shape) { return exponential_of(d, shape) / first(d); },
       .reparametrized = true});
  out.push_back(
      {.name = "gamma",
       .parameters = {"concentration", "rate"},
       .log_prob = [](const D& d, const T& x) { return gamma_log_prob(first(d), second(d), x); },
       .entropy = [](const D& d) { return gamma_entropy(first(d), second(d)); },
       .mean = [](const D& d) { return first(d) / second(d); },
       .variance = [](const D& d) { return first(d) / square_of(second(d)); },
       .cdf = [](const D& d, const T& x) { return ops::gammainc(first(d), second(d) * x); },
       .draw = [](const D& d, const Shape& shape) { return gamma_of(first(d), shape) / second(d); },
       .reparametrized = true});
  out.push_back(
      {.name = "gumbel",
       .parameters = {"loc", "scale"},
       .log_prob =
           [](const D& d, const T& x) {
             const Tensor y = -standard(d, x);
             return y - ops::exp(y) - ops::log(second(d));
           },
       .entropy = [](const D& d) { return ops::log(second(d)) + (1.0 + kEuler); },
       .mean = [](const D& d) { return first(d) + kEuler * second(d); },
       .variance = [](const D& d) { return square_of(second(d)) * (pi * pi / 6); },
       .cdf = [](const D& d, const T& x) { return ops::exp(-ops::exp(-standard(d, x))); },
       .icdf = [](const D& d, const T& u) { return first(d) - second(d) * ops::log(-ops::log(u)); },
       .draw =
           [](const D& d, const Shape& shape) {
             return first(d) - second(d) * ops::log(exponential_of(d, shape));
           },
       .reparametrized = true});
  out.push_back(
      {.name = "laplace",
       .parameters = {"loc", "scale"},
       .log_prob = [](const D& d,
                      const T& x) { return -ops::abs(standard(d, x)) - ops::log(2.0 * second(d)); },
       .entropy = [](const D& d) { return 1.0 + ops::log(2.0 * second(d)); },
       .mean = [](const D& d) { return first(d) + 0.0 * second(d); },
       .variance = [](const D& d) { return 2.0 * square_of(second(d)); },
       .cdf =
           [](const D& d, const T& x) {
             const Tensor y = standard(d, x);
             return 0.5 - 0.5 * ops::sign(y) * ops::expm1(-ops::abs(y));
           },
       .icdf =
           [](const D& d, const T& u) {
             const Tensor t = u - 0.5;
             return first(d) - second(d) * ops::sign(t) * ops::log1p(-2.0 * ops::abs(t));
           },
       .draw = laplace_draw,
       .reparametrized = true});
  out.push_back(
      {.name = "lognormal",
       .parameters = {"loc", "scale"},
       .log_prob =
           [](const D& d, const T& x) {
             const Tensor y = ops::log(x);
             return normal_log_prob(d, y) - y;
           },
       .entropy = [](const D& d) { return first(d) + ops::log(second(d)) + 0.5 * (1 + kLogTwoPi); },
       .mean = [](const D& d) { return ops::exp(first(d) + 0.5 * square_of(second(d))); },
       .variance =
           [](const D& d) {
             const Tensor v = square_of(second(d));
             return ops::expm1(v) * ops::exp(2.0 * first(d) + v);
           },
       .cdf =
           [](const D& d, const T& x) {
             return 0.5 * (1.0 + ops::erf(standard(d, ops::log(x)) / std::numbers::sqrt2));
           },
       .icdf =
           [](const D& d, const T& u) {
             return ops::exp(first(d) +
                             second(d) * std::numbers::sqrt2 * ops::erfinv(2.0 * u - 1.0));
           },
       .draw =
           [](const D& d, const Shape& shape) {
             return ops::exp(first(d) + second(d) * gaussian_of(d, shape));
           },
       .reparametrized = true});
  out.push_back(
      {.name = "normal",
       .parameters = {"loc", "scale"},
       .log_prob = normal_log_prob,
       .entropy = [](const D& d) { return ops::log(second(d)) + 0.5 * (1 + kLogTwoPi); },
       .mean = [](const D& d) { return first(d) + 0.0 * second(d); },
       .variance = [](const D& d) { return square_of(second(d)); },
       .cdf =
           [](const D& d, const T& x) {
             return 0.5 * (1.0 + ops::erf(standard(d, x) / std::numbers::sqrt2));
           },
       .icdf =
           [](const D& d, const T& u) {
             return first(d) + second(d) * std::numbers::sqrt2 * ops::erfinv(2.0 * u - 1.0);
           },
       .draw = [](const D& d,
                  const Shape& shape) { return first(d) + second(d) * gaussian_of(d, shape); },
       .reparametrized = true});
  out.push_back({.name = "student_t",
                 .parameters = {"df", "loc", "scale"},
                 .log_prob = student_log_prob,
                 .entropy = student_entropy,
                 .mean =
                     [](const D& d) {
                       return ops::where(ops::greater_than(first(d), number(1.0)), second(d),
                                         full_of({}, NAN, d.dtype()));
                     },
                 .variance = student_variance,
                 .draw = student_draw,
                 .reparametrized = true});
  out.push_back(
      {.name = "uniform",
       .parameters = {"low", "high"},
       .log_prob = uniform_log_prob,
       .entropy = [](const D& d) { return ops::log(second(d) - first(d)); },
       .mean = [](const D& d) { return 0.5 * (first(d) + second(d)); },
       .variance = [](const D& d) { return square_of(second(d) - first(d)) / 12.0; },
       .cdf =
           [](const D& d, const T& x) {
             return ops::clip((x - first(d)) / (second(d) - first(d)), 0.0, 1.0);
           },
       .icdf = [](const D& d, const T& u) { return first(d) + (second(d) - first(d)) * u; },
       .draw =
           [](const D& d, const Shape& shape) {
             return first(d) + (second(d) - first(d)) * uniform_of(d, shape);
           },
       .reparametrized = true});
  return out;
}

}  // namespace

const std::vector<Kind>& continuous_kinds() {
  static const std::vector<Kind> kinds = make_continuous_kinds();
  return kinds;
}

}  // namespace paddle::distribution
