// Losses of rows of which some are ignored, in both modes: what an ignored row holds, be it NaN or
// infinity, is not in the loss. Expected values are worked out by hand.

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "inspect/both_modes.h"
#include "ops/generated/ops.h"

namespace paddle::inspect {
namespace {

constexpr float kInf = std::numeric_limits<float>::infinity();
const float kNaN = std::nanf("");

void expect_values(const TensorFn& loss, const std::vector<Array>& inputs,
                   const std::vector<double>& expected) {
  for (const Mode mode : {Mode::kEager, Mode::kCompiled}) {
    const auto results = run(mode, loss, inputs);
    ASSERT_EQ(results[0]->size(), static_cast<int64_t>(expected.size()));
    for (size_t i = 0; i < expected.size(); ++i)
      EXPECT_NEAR(results[0]->number(static_cast<int64_t>(i)), expected[i], 1e-6)
          << text(mode) << " [" << i << "]";
  }
}

TEST(IgnoredRows, OfLogProbabilities) {
  const std::vector<Array> inputs = {
      Array::from<float>({-1, -2, kNaN, kInf, -3, -4, -kInf, kNaN}, {4, 2}),
      Array::from<int64_t>({1, -100, 0, -100}, {4}), Array::from<float>({2, 0.5F}, {2})};
  for (const std::string reduction : {"mean", "sum", "none"}) {
    const auto weighted = [&](const Tensors& x) -> Tensors {
      return {ops::nll_loss(x[0], x[1], x[2], -100, reduction)};
    };
    expect_values(weighted, inputs,
                  reduction == "mean"  ? std::vector<double>{(2 * 0.5 + 3 * 2) / 2.5}
                  : reduction == "sum" ? std::vector<double>{2 * 0.5 + 3 * 2}
                                       : std::vector<double>{1, 0, 6, 0});
  }
}

TEST(IgnoredRows, OfLogits) {
  const std::vector<Array> inputs = {Array::from<float>({1, 2, kNaN, kInf, 0, 3}, {3, 2}),
                                     Array::from<int64_t>({1, -100, 0}, {3})};
  const double first = std::log1p(std::exp(-1.0)), last = std::log1p(std::exp(3.0));
  const auto loss = [](double smoothing) {
    return [smoothing](const Tensors& x) -> Tensors {
      return {ops::cross_entropy(x[0], x[1], {}, -100, "mean", false, -1, true, smoothing)};
    };
  };
  expect_values(loss(0), inputs, {(first + last) / 2});
  // A tenth for the other class, whose loss is larger by 1, or smaller by 3.
  expect_values(loss(0.2), inputs, {(first + 0.1 * 1 + last - 0.1 * 3) / 2});
}

TEST(IgnoredRows, OfProbabilitiesWhoseIgnoredLabelIsAClass) {
  const std::vector<Array> inputs = {Array::from<float>({0.25F, 0.75F, 0.5F, 0.5F}, {2, 2}),
                                     Array::from<int64_t>({1, 0}, {2})};
  const auto loss = [](const Tensors& x) -> Tensors {
    return {ops::cross_entropy(x[0], x[1], {}, 0, "none", false, -1, false)};
  };
  expect_values(loss, inputs, {-std::log(0.75), 0});
}

}  // namespace
}  // namespace paddle::inspect
