// Kullback-Leibler divergences of pairs of distributions: KL(p || q) = E_p[log p - log q].

#include "ops/distribution/kinds.h"
#include "ops/generated/indexing.h"
#include "ops/generated/linalg.h"
#include "ops/generated/math.h"
#include "ops/generated/reduce.h"
#include "ops/generated/shape.h"

namespace paddle::distribution {
namespace {

using D = Distribution;

Tensor of_normals(const D& p, const D& q) {
  const Tensor ratio = square_of(second(p) / second(q));
  const Tensor shift = square_of((first(p) - first(q)) / second(q));
  return 0.5 * (ratio + shift - 1.0 - ops::log(ratio));
}

Tensor of_gammas(const Tensor& a, const Tensor& rate, const Tensor& b, const Tensor& other) {
  return b * ops::log(rate / other) + ops::lgamma(b) - ops::lgamma(a) + (a - b) * ops::digamma(a) +
         (other - rate) * a / rate;
}

Tensor binary(const Tensor& p, const Tensor& q) {
  return x_log_y(p, p / q) + x_log_y(1.0 - p, (1.0 - p) / (1.0 - q));
}

Tensor of_betas(const D& p, const D& q) {
  const Tensor &a = first(p), &b = second(p), &c = first(q), &d = second(q);
  const Tensor sum = a + b, other = c + d;
  return ops::lgamma(sum) - ops::lgamma(other) + ops::lgamma(c) + ops::lgamma(d) - ops::lgamma(a) -
         ops::lgamma(b) + (a - c) * ops::digamma(a) + (b - d) * ops::digamma(b) -
         (sum - other) * ops::digamma(sum);
}

Tensor of_choices(const D& p, const D& q) {
  const Tensor a = first(p) / ops::sum(first(p), std::vector<int64_t>{-1}, std::nullopt, true);
  const Tensor b = first(q) / ops::sum(first(q), std::vector<int64_t>{-1}, std::nullopt, true);
  return sum_last(x_log_y(a, a / b), 1);
}

Tensor of_dirichlets(const D& p, const D& q) {
  const Tensor &a = first(p), &b = first(q), sum = sum_last(a, 1);
  const Tensor centered =
      ops::digamma(a) - ops::unsqueeze(ops::digamma(sum), std::vector<int64_t>{-1});
  return ops::lgamma(sum) - ops::lgamma(sum_last(b, 1)) -
         sum_last(ops::lgamma(a) - ops::lgamma(b), 1) + sum_last((a - b) * centered, 1);
}

/// Chyzak and Nielsen, "A closed-form formula for the Kullback-Leibler divergence between Cauchy
/// distributions", 2019.
Tensor of_cauchys(const D& p, const D& q) {
  const Tensor wide = square_of(second(p) + second(q)) + square_of(first(p) - first(q));
  return ops::log(wide / (4.0 * second(p) * second(q)));
}

Tensor of_laplaces(const D& p, const D& q) {
  const Tensor distance = ops::abs(first(p) - first(q));
  return (second(p) * ops::exp(-distance / second(p)) + distance) / second(q) +
         ops::log(second(q) / second(p)) - 1.0;
}

Tensor of_gumbels(const D& p, const D& q) {
  const Tensor ratio = second(p) / second(q);
  const Tensor shift = (first(p) - first(q)) / second(q);
  return -ops::log(ratio) + kEuler * (ratio - 1.0) + ops::exp(-shift + ops::lgamma(ratio + 1.0)) -
         1.0 + shift;
}

/// -H(p) - E_p[log q], which is linear in x.
Tensor of_continuous_bernoullis(const D& p, const D& q) {
  const Tensor mean = p.mean(), zero = 0.0 * first(q);
  const Tensor at_zero = q.log_prob(zero);
  const Tensor slope = ops::log(first(q)) - ops::log1p(-first(q));
  return -p.entropy() - (at_zero + mean * slope);
}

Tensor of_uniforms(const D& p, const D& q) {
  const Tensor inside = ops::logical_and(ops::less_equal(first(q), first(p)),
                                         ops::greater_equal(second(q), second(p)));
  const Tensor finite = ops::log((second(q) - first(q)) / (second(p) - first(p)));
  return ops::where(inside, finite, full_of({}, INFINITY, p.dtype()));
}

Tensor of_binomials(const D& p, const D& q) {
  if (p.trials() && q.trials() && *p.trials() != *q.trials())
    p.reject("kl_divergence needs the same total_count on both sides");
  return first(p) * binary(second(p), second(q));
}

Tensor of_normal_vectors(const D& p, const D& q) {
  const Tensor &a = second(p), &b = second(q);
  const auto log_det = [](const Tensor& factor) {
    return sum_last(ops::log(ops::diagonal(factor, 0, -2, -1)), 1);
  };
  const Tensor spread = ops::triangular_solve(b, a, false);
  const Tensor shift = ops::triangular_solve(
      b, ops::unsqueeze(first(p) - first(q), std::vector<int64_t>{-1}), false);
  const Tensor squares = sum_last(square_of(spread), 2) + sum_last(square_of(shift), 2);
  const Tensor n = dim_value(first(p).shape().back(), p.dtype());
  return log_det(b) - log_det(a) + 0.5 * (squares - n);
}

struct Rule {
  std::string_view p, q;
  Divergence rule;
};

const std::vector<Rule>& all_rules() {
  static const std::vector<Rule> rules = {
      {"bernoulli", "bernoulli", [](const D& p, const D& q) { return binary(first(p), first(q)); }},
      {"beta", "beta", of_betas},
      {"binomial", "binomial", of_binomials},
      {"categorical", "categorical", of_choices},
      {"cauchy", "cauchy", of_cauchys},
      {"chi2", "chi2",
       [](const D& p, const D& q) {
         const Tensor half = full_of({}, 0.5, p.dtype());
         return of_gammas(0.5 * first(p), half, 0.5 * first(q), half);
       }},
      {"continuous_bernoulli", "continuous_bernoulli", of_continuous_bernoullis},
      {"dirichlet", "dirichlet", of_dirichlets},
      {"exponential", "exponential",
       [](const D& p, const D& q) {
         const Tensor ratio = first(q) / first(p);
         return ratio - 1.0 - ops::log(ratio);
       }},
      {"exponential", "gamma",
       [](const D& p, const D& q) {
         return of_gammas(ones_like(first(p)), first(p), first(q), second(q));
       }},
      {"gamma", "exponential",
       [](const D& p, const D& q) {
         return of_gammas(first(p), second(p), ones_like(first(q)), first(q));
       }},
      {"gamma", "gamma",
       [](const D& p, const D& q) { return of_gammas(first(p), second(p), first(q), second(q)); }},
      {"geometric", "geometric",
       [](const D& p, const D& q) { return binary(first(p), first(q)) / first(p); }},
      {"gumbel", "gumbel", of_gumbels},
      {"laplace", "laplace", of_laplaces},
      {"lognormal", "lognormal", of_normals},
      {"multivariate_normal", "multivariate_normal", of_normal_vectors},
      {"normal", "laplace",
       // E|x - m| of a normal variable is that of a folded one.
       [](const D& p, const D& q) {
         const Tensor shift = first(p) - first(q), z = shift / second(p);
         const Tensor absolute =
             second(p) * std::sqrt(2 / std::numbers::pi) * ops::exp(-0.5 * square_of(z)) +
             shift * ops::erf(z / std::numbers::sqrt2);
         return absolute / second(q) + ops::log(2.0 * second(q)) - ops::log(second(p)) -
                0.5 * (1 + kLogTwoPi);
       }},
      {"normal", "normal", of_normals},
      {"poisson", "poisson",
       [](const D& p, const D& q) {
         return x_log_y(first(p), first(p) / first(q)) - first(p) + first(q);
       }},
      {"uniform", "normal",
       [](const D& p, const D& q) {
         const Tensor from = p.mean() - first(q), width = second(p) - first(p);
         return ops::log(second(q)) + 0.5 * kLogTwoPi - ops::log(width) +
                (square_of(width) / 12.0 + square_of(from)) / (2.0 * square_of(second(q)));
       }},
      {"uniform", "uniform", of_uniforms},
  };
  return rules;
}

}  // namespace

Divergence find_divergence(std::string_view p, std::string_view q) {
  for (const Rule& rule : all_rules())
    if (rule.p == p && rule.q == q) return rule.rule;
  return nullptr;
}

}  // namespace paddle::distribution
