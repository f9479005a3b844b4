// Outcomes that distributions draw have the mean and the variance that their formulas state, and
// the gradient of their average with respect to the parameters is that of the mean.

#include "ops/distribution/distribution.h"

#include <gtest/gtest.h>

#include <cmath>

#include "autograd/autograd.h"
#include "inspect/both_modes.h"
#include "ops/core/operators.h"
#include "ops/generated/distribution.h"
#include "ops/generated/linalg.h"
#include "ops/generated/math.h"
#include "ops/generated/reduce.h"
#include "runtime/execute.h"

namespace paddle::distribution {
namespace {

constexpr int64_t kDraws = 40000;

struct Example {
  const char* kind;
  std::vector<double> parameters;
  std::optional<int64_t> trials = std::nullopt;
};

const std::vector<Example>& examples() {
  static const std::vector<Example> all = {
      {"bernoulli", {0.3}},
      {"beta", {2, 3}},
      {"binomial", {7, 0.4}, 7},
      {"chi2", {3}},
      {"continuous_bernoulli", {0.2}},
      {"exponential", {1.5}},
      {"gamma", {2.5, 1.5}},
      {"gamma", {0.4, 2}},
      {"geometric", {0.3}},
      {"gumbel", {0.5, 1.5}},
      {"laplace", {0.5, 1.5}},
      {"lognormal", {0.2, 0.4}},
      {"normal", {-1, 2}},
      {"poisson", {4}},
      {"student_t", {8, 0.5, 1.5}},
      {"uniform", {-1, 3}},
  };
  return all;
}

/// Results of a function of the parameters of an example.
std::vector<double> compute(const Example& e, const std::function<Tensors(const Distribution&)>& f,
                            inspect::Mode mode) {
  std::vector<Array> inputs;
  for (const double p : e.parameters) inputs.push_back(Array::from<double>({p}, {}));
  const auto found = inspect::run(
      mode,
      [&](const Tensors& parameters) {
        Tensors out = f(*Distribution::make(*find_kind(e.kind), parameters, e.trials));
        const Tensors slopes = autograd::grad(Tensors{out[0]}, parameters);
        out.insert(out.end(), slopes.begin(), slopes.end());
        return out;
      },
      inputs);
  std::vector<double> out;
  for (const auto& value : found) out.push_back(value ? value->number() : 0.0);
  return out;
}

TEST(Distributions, DrawWhatTheyState) {
  for (const inspect::Mode mode : {inspect::Mode::kEager, inspect::Mode::kCompiled}) {
    for (const Example& e : examples()) {
      SCOPED_TRACE(e.kind);
      const bool smooth = find_kind(e.kind)->reparametrized;
      const auto drawn = compute(
          e,
          [&](const Distribution& d) {
            const Tensor x = smooth ? d.rsample({Dim(kDraws)}) : d.sample({Dim(kDraws)});
            const Tensor mean = ops::mean(x), centered = x - mean;
            return Tensors{mean, ops::mean(centered * centered)};
          },
          mode);
      const auto stated = compute(
          e,
          [](const Distribution& d) {
            return Tensors{d.mean(), d.variance()};
          },
          mode);
      const double error = std::sqrt(stated[1] / kDraws);
      EXPECT_NEAR(drawn[0], stated[0], 5 * error);
      EXPECT_NEAR(drawn[1], stated[1], 0.12 * stated[1]);
      if (!smooth) continue;
      for (size_t i = 2; i < drawn.size(); ++i)
        EXPECT_NEAR(drawn[i], stated[i], 0.05 * std::max(1.0, std::abs(stated[i]))) << i - 2;
    }
  }
}

TEST(Distributions, DrawVectors) {
  const auto found = inspect::run(
      inspect::Mode::kEager,
      [](const Tensors& in) {
        Tensors out;
        const auto note = [&](const DistributionPtr& d) {
          const Tensor x = ops::cast(d->sample({Dim(kDraws)}), DType::kF64);
          out.push_back(ops::mean(x, std::vector<int64_t>{0}));
          out.push_back(d->kind().mean ? d->mean() : Tensor(in[0]));
        };
        note(Distribution::make(*find_kind("dirichlet"), {in[0]}));
        note(Distribution::make(*find_kind("multinomial"), {Tensor::number(int64_t{5}), in[0]}, 5));
        const Tensor one_hot = Tensor(Array::from<double>({0, 1, 2}, {3}));
        const Tensor picked =
            ops::cast(Distribution::make(*find_kind("categorical"), {in[0]})->sample({Dim(kDraws)}),
                      DType::kF64);
        out.push_back(ops::mean(picked));
        out.push_back(ops::sum(in[0] * one_hot) / ops::sum(in[0]));
        return out;
      },
      {Array::from<double>({1, 2, 3}, {3})});
  for (size_t i = 0; i + 1 < found.size(); i += 2)
    for (int64_t k = 0; k < found[i]->size(); ++k)
      EXPECT_NEAR(found[i]->number(k), found[i + 1]->number(k), 0.05) << i << " " << k;
}

/// Each correlation has the mean 0 and the variance 1 / (2 concentration + dim - 1).
TEST(Distributions, DrawCholeskyFactorsOfCorrelations) {
  constexpr int64_t kDim = 4;
  const double concentration = 1.5;
  for (const inspect::Mode mode : {inspect::Mode::kEager, inspect::Mode::kCompiled}) {
    const auto found = inspect::run(
        mode,
        [](const Tensors& x) {
          const Tensor factors = ops::lkj_cholesky_sample(x[0], kDim, {Dim(kDraws)});
          const Tensor products = ops::matmul(factors, factors, false, true);
          const std::vector<int64_t> draws = {0};
          return Tensors{ops::mean(products, draws), ops::mean(ops::square(products), draws)};
        },
        {Array::scalar(concentration)});
    const double variance = 1 / (2 * concentration + kDim - 1);
    for (int64_t i = 0; i < kDim; ++i)
      for (int64_t k = 0; k < kDim; ++k) {
        EXPECT_NEAR(found[0]->number(i * kDim + k), i == k, i == k ? 1e-9 : 0.01);
        EXPECT_NEAR(found[1]->number(i * kDim + k), i == k ? 1 : variance, i == k ? 1e-9 : 0.01);
      }
  }
}

TEST(Distributions, RelaxedBernoulliNearsItsOutcomes) {
  const auto found = inspect::run(
      inspect::Mode::kEager,
      [](const Tensors& in) {
        const auto d = Distribution::make(*find_kind("bernoulli"), {in[0]});
        const Tensor x = d->relaxed_sample({Dim(kDraws)}, 0.5);
        return Tensors{
            ops::mean(ops::cast(ops::greater_than(x, Tensor::number(0.0)), DType::kF64))};
      },
      {Array::from<double>({0.3}, {})});
  EXPECT_NEAR(found[0]->number(), 0.3, 0.02);
}

}  // namespace
}  // namespace paddle::distribution
