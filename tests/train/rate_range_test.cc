// The rounds of successive halving, and what a learning-rate range test finds in a curve.

#include <gtest/gtest.h>

#include <cmath>

#include "base/error.h"
#include "train/sweeps/rate_test.h"
#include "train/sweeps/sweep.h"

namespace paddle::train {
namespace {

TEST(Halving, RoundsGrowAsTrialsShrink) {
  const std::vector<Rung> rungs = halving_rungs(20, 3);
  ASSERT_EQ(rungs.size(), 3u);
  EXPECT_EQ(rungs[0].trials, 20u);
  EXPECT_EQ(rungs[1].trials, 6u);
  EXPECT_EQ(rungs[2].trials, 2u);
  EXPECT_DOUBLE_EQ(rungs[0].share, 1.0 / 9);
  EXPECT_DOUBLE_EQ(rungs[1].share, 1.0 / 3);
  EXPECT_DOUBLE_EQ(rungs[2].share, 1.0);
  EXPECT_EQ(halving_rungs(1, 2).size(), 1u);
  EXPECT_THROW(halving_rungs(4, 1), Error);
}

/// 100 steps over seven powers of ten: flat, falling around `fall`, rising from `rise` on.
std::vector<RateAt> curve(double fall, double rise) {
  std::vector<RateAt> out;
  const double factor = rate_factor(1e-6, 10, 100);
  double rate = 1e-6;
  for (int64_t i = 0; i < 100; ++i, rate *= factor) {
    const double down = 1 / (1 + std::pow(rate / fall, -2)), up = std::pow(rate / rise, 2);
    out.push_back({i + 1, rate, 3 - 2 * down + up});
  }
  return out;
}

TEST(RateTest, FindsTheSlopeTheMinimumAndTheDivergence) {
  const RateTest test = analyze_rates(curve(1e-4, 1e-1));
  EXPECT_NEAR(test.steps.back().rate, 10, 1e-6);
  EXPECT_GT(test.steepest, 3e-5);
  EXPECT_LT(test.steepest, 1e-3);
  EXPECT_GT(test.lowest, 1e-3);
  EXPECT_LT(test.lowest, 1e-1);
  EXPECT_GT(test.diverges, 1e-1);
  EXPECT_LE(test.suggested, test.lowest / 10);
}

TEST(RateTest, RejectsCurvesWithoutAnAnswer) {
  std::vector<RateAt> rising;
  for (int64_t i = 0; i < 30; ++i)
    rising.push_back({i + 1, std::pow(10.0, static_cast<double>(i)), static_cast<double>(i)});
  EXPECT_THROW(analyze_rates(rising), Error);
  std::vector<RateAt> broken = curve(1e-4, 1e-1);
  broken[5].loss = std::nan("");
  EXPECT_THROW(analyze_rates(broken), Error);
  broken = curve(1e-4, 1e9);
  broken[80].loss = INFINITY;
  EXPECT_EQ(analyze_rates(broken).diverges, broken[80].rate);
}

}  // namespace
}  // namespace paddle::train
