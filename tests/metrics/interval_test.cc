// The delete-a-group jackknife: of a mean it is the classical interval, it covers what it should,
// and it is silent where it means nothing.

#include "metrics/interval.h"

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <random>
#include <vector>

namespace paddle::metrics {
namespace {

TEST(Interval, OfGroupMeansIsThatOfTheTDistribution) {
  // Groups of equal size: the interval of the mean of 20 group means, mean ± t s / sqrt(20).
  std::vector<double> groups, without;
  double sum = 0;
  for (int i = 0; i < 20; ++i) groups.push_back(std::sin(3.0 * i));
  for (const double g : groups) sum += g;
  const double mean = sum / 20;
  double squares = 0;
  for (const double g : groups) {
    without.push_back((sum - g) / 19);
    squares += (g - mean) * (g - mean);
  }
  const auto interval = jackknife_interval(mean, without);
  ASSERT_TRUE(interval.has_value());
  const double half =
      2.093024054408263 * std::sqrt(squares / 19 / 20);  // scipy.stats.t.ppf(.975, 19)
  EXPECT_NEAR(interval->low, mean - half, 1e-6);
  EXPECT_NEAR(interval->high, mean + half, 1e-6);
}

TEST(Interval, CoversTheTruthNineteenTimesOfTwenty) {
  std::mt19937 random(7);
  int covered = 0;
  constexpr int kRounds = 400, kSamples = 300;
  for (int round = 0; round < kRounds; ++round) {
    std::array<double, kIntervalGroups> hits{}, counts{};
    for (int i = 0; i < kSamples; ++i) {
      const size_t group = interval_group(round * kSamples + i);
      hits[group] += std::bernoulli_distribution(0.8)(random);
      counts[group] += 1;
    }
    double all = 0, n = 0;
    for (size_t g = 0; g < kIntervalGroups; ++g) all += hits[g], n += counts[g];
    std::vector<double> without;
    for (size_t g = 0; g < kIntervalGroups; ++g)
      without.push_back((all - hits[g]) / (n - counts[g]));
    const auto interval = jackknife_interval(all / n, without);
    ASSERT_TRUE(interval.has_value());
    covered += interval->low <= 0.8 && 0.8 <= interval->high;
  }
  EXPECT_GE(covered, kRounds * 91 / 100);
  EXPECT_LE(covered, kRounds * 99 / 100);
}

TEST(Interval, IsNoneForFewGroupsAndValuesThatAreNotNumbers) {
  std::vector<double> without(9, 0.5);
  EXPECT_FALSE(jackknife_interval(0.5, without).has_value());
  without.push_back(std::nan(""));
  EXPECT_FALSE(jackknife_interval(0.5, without).has_value());
  without.back() = 0.5;
  EXPECT_TRUE(jackknife_interval(0.5, without).has_value());
  EXPECT_FALSE(jackknife_interval(std::nan(""), without).has_value());
}

TEST(Interval, GroupsAreOfAboutEqualSize) {
  std::array<int, kIntervalGroups> counts{};
  for (int64_t i = 0; i < 20000; ++i) ++counts[interval_group(i)];
  for (const int count : counts) EXPECT_NEAR(count, 1000, 150);
}

}  // namespace
}  // namespace paddle::metrics
