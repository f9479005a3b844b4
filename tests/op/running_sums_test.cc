// Gradients of running sums whose terms differ by more than the digits or the exponents of their
// type hold.

#include <gtest/gtest.h>

#include <cmath>

#include "autograd/autograd.h"
#include "inspect/both_modes.h"
#include "ops/core/operators.h"
#include "ops/generated/linalg.h"
#include "ops/generated/loss.h"
#include "ops/generated/reduce.h"
#include "ops/generated/sequence.h"
#include "runtime/execute.h"

namespace paddle {
namespace {

using Vector = std::vector<double>;

/// The gradient of `fn` at x for a cotangent, in both modes.
template <class F>
void expect_gradient(const F& fn, const Vector& x, const Vector& cotangent, const Vector& wanted,
                     DType dtype, double tolerance) {
  runtime::register_backends();
  const auto size = static_cast<int64_t>(x.size());
  const Array operand = Array::from<double>(x, {size}).cast(dtype);
  const Array seed = Array::from<double>(cotangent, {size}).cast(dtype);
  for (const inspect::Mode mode : {inspect::Mode::kEager, inspect::Mode::kCompiled}) {
    const auto found =
        inspect::run(mode,
                     [&](const Tensors& given) {
                       return autograd::grad(Tensors{fn(given[0])}, {given[0]}, {given[1]});
                     },
                     {operand, seed});
    const Array got = found.at(0)->contiguous();
    for (size_t i = 0; i < wanted.size(); ++i)
      EXPECT_NEAR(got.number(static_cast<int64_t>(i)), wanted[i],
                  tolerance * std::max(1.0, std::abs(wanted[i])))
          << inspect::text(mode) << " " << text(dtype) << " at " << i;
  }
}

Tensor log_sums(const Tensor& x) { return ops::logcumsumexp(x, 0); }

// By hand: the gradient at i is the sum over j >= i of g_j exp(x_i - y_j).
Vector by_hand(const Vector& x, const Vector& g) {
  Vector out(x.size(), 0);
  for (size_t i = 0; i < x.size(); ++i) {
    long double highest = x[0], sum = 1;
    for (size_t j = 0; j < x.size(); ++j) {
      if (j > 0) {
        const long double next = std::max<long double>(highest, x[j]);
        sum = sum * std::exp(highest - next) + std::exp(x[j] - next);
        highest = next;
      }
      if (j >= i) out[i] += static_cast<double>(g[j] * std::exp(x[i] - highest - std::log(sum)));
    }
  }
  return out;
}

TEST(RunningSums, LogSumsOfDistantTerms) {
  const Vector x = {-127.3, 14.0, 2.4, 18.9, 31.8}, g = {1.516, -1.179, -0.541, 0.390, 0.113};
  const Vector wanted = by_hand(x, g);
  EXPECT_NEAR(wanted[1], -1.717, 1e-3);
  expect_gradient(log_sums, x, g, wanted, DType::kF64, 1e-12);
  expect_gradient(log_sums, x, g, wanted, DType::kF32, 2e-5);
  const Vector far = {-95, 90, -300, 88, 91}, ones = {1, -2, 3, 0, 1};
  expect_gradient(log_sums, far, ones, by_hand(far, ones), DType::kF64, 1e-12);
  expect_gradient(log_sums, far, ones, by_hand(far, ones), DType::kF32, 2e-5);
}

TEST(RunningSums, LogSumsFromMinusInfinity) {
  const double lowest = -INFINITY;
  expect_gradient(log_sums, {lowest, lowest, 1, 2}, {1, 1, 1, 1},
                  {0, 0, 1 + 1 / (1 + std::exp(1.0)), std::exp(1.0) / (1 + std::exp(1.0))},
                  DType::kF64, 1e-12);
}

// The total minus a running sum would give 0 for the small ones.
TEST(RunningSums, ReversedSumsKeepSmallTerms) {
  const auto sums = [](const Tensor& x) { return ops::cumsum(x, 0); };
  expect_gradient(sums, {1, 2, 3, 4}, {1e8, 1, 2, 4}, {1e8 + 7, 7, 6, 4}, DType::kF32, 1e-7);
  const auto products = [](const Tensor& x) { return ops::cumprod(x, 0); };
  expect_gradient(products, {1, 1, 1, 1}, {1e8, 1, 2, 4}, {1e8 + 7, 7, 6, 4}, DType::kF32, 1e-7);
}

// paddle.linalg.cholesky_inverse of PaddlePaddle 3.0 in float64.
TEST(Gradients, OfCholeskyInverseIsOfBothTriangles) {
  runtime::register_backends();
  runtime::EagerExecutor executor;
  const InterpreterScope scope(executor);
  autograd::Tape tape;
  const InterpreterScope recording(tape);
  const Tensor factor =
      autograd::variable(Tensor(Array::from<double>({2, 0, 0, 1, 3, 0, -1, 0.5, 1.5}, {3, 3})));
  const Tensor gradient = autograd::grad({ops::cholesky_inverse(factor)}, {factor})[0];
  const Vector wanted = {-0.5895061728395063, -0.1965020576131687,  -1.1135116598079562,
                         0.04938271604938271, 0.01646090534979424,  0.09327846364883402,
                         -0.6296296296296297, -0.20987654320987648, -1.1893004115226335};
  for (size_t i = 0; i < wanted.size(); ++i)
    EXPECT_NEAR(gradient.array().contiguous().number(static_cast<int64_t>(i)), wanted[i], 1e-12);
}

TEST(SequenceMask, IsAsLongAsTheLongest) {
  runtime::register_backends();
  const auto found = inspect::run(
      inspect::Mode::kEager, [](const Tensors& x) { return Tensors{ops::sequence_mask(x[0])}; },
      {Array::from<int64_t>({2, 0, 3}, {3})});
  const Array mask = found.at(0)->contiguous();
  EXPECT_EQ(mask.shape, (Dims{3, 3}));
  const Vector wanted = {1, 1, 0, 0, 0, 0, 1, 1, 1};
  for (int64_t i = 0; i < mask.size(); ++i)
    EXPECT_EQ(mask.number(i), wanted[static_cast<size_t>(i)]) << i;
}

}  // namespace
}  // namespace paddle
