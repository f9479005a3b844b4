#include "quant_common/observer.h"

#include <cmath>
#include <limits>

#include <gtest/gtest.h>

namespace paddle::quant {
namespace {

Array floats(const std::vector<float>& values) {
  return Array::from<float>(values, {static_cast<int64_t>(values.size())});
}

TEST(Observer, MinMaxIsExactHoweverTheRangeGrows) {
  Observer o;
  o.add(floats({0.5f, 1.0f}));
  o.add(floats({-300.0f}));
  o.add(floats({7.25f, 1000.0f}));
  const Range r = o.range(RangeMethod::kMinMax, 256);
  EXPECT_DOUBLE_EQ(r.low, -300);
  EXPECT_DOUBLE_EQ(r.high, 1000);
  EXPECT_EQ(o.count(), 5);
}

TEST(Observer, AbsMaxIsSymmetric) {
  Observer o;
  o.add(floats({-3, 1}));
  o.add(floats({0.5f, 2}));
  Range r = o.range(RangeMethod::kAbsMax, 256);
  EXPECT_DOUBLE_EQ(r.low, -3);
  EXPECT_DOUBLE_EQ(r.high, 3);
  o.add(floats({8}));
  r = o.range(RangeMethod::kAbsMax, 256);
  EXPECT_DOUBLE_EQ(r.low, -8);
  EXPECT_DOUBLE_EQ(r.high, 8);
}

TEST(Observer, ValuesThatAreNotFiniteAreCountedApart) {
  Observer o;
  o.add(floats({1, std::numeric_limits<float>::infinity(), std::nanf(""), 2}));
  EXPECT_EQ(o.count(), 2);
  EXPECT_EQ(o.not_finite(), 2);
  EXPECT_DOUBLE_EQ(o.range(RangeMethod::kMinMax, 256).high, 2);
}

/// 0, 1, …, 9999 and one outlier.
Observer with_outlier() {
  Observer o;
  std::vector<float> values;
  for (int i = 0; i < 10000; ++i) values.push_back(static_cast<float>(i) / 10000);
  values.push_back(100);
  o.add(floats(values));
  return o;
}

TEST(Observer, PercentileCutsAnOutlier) {
  const Range r = with_outlier().range(RangeMethod::kPercentile, 256, 99.9);
  EXPECT_LT(r.high, 1.1);
  EXPECT_GT(r.high, 0.9);
}

TEST(Observer, MseKeepsAnOutlierThatWeighsMore) {
  // One value in 10,001: clipping it costs about 99^2, keeping it (100/255)^2 / 12 for each of the
  // others, which is 128 in all.
  EXPECT_GT(with_outlier().range(RangeMethod::kMse, 256).high, 50);
}

TEST(Observer, MseClipsTheTailOfANormalDistribution) {
  // With 4 bits the optimal clipping of a unit normal distribution is about 2.5 standard deviations
  // (Banner et al., "Post training 4-bit quantization of convolutional networks", 2019: 2.55).
  Observer o;
  std::vector<float> values;
  for (int i = 1; i < 20000; ++i) {
    // Inverse of the normal distribution by bisection on erf.
    const double p = i / 20000.0;
    double low = -6, high = 6;
    for (int k = 0; k < 50; ++k) {
      const double middle = (low + high) / 2;
      (0.5 * (1 + std::erf(middle / std::sqrt(2.0))) < p ? low : high) = middle;
    }
    values.push_back(static_cast<float>(low));
  }
  o.add(floats(values));
  EXPECT_NEAR(o.range(RangeMethod::kMse, 16).high, 2.55, 0.15);
}

TEST(Observer, KlCutsAFarOutlierOfALaplaceDistribution) {
  Observer o;
  std::vector<float> values;
  for (int i = 1; i < 20000; ++i) values.push_back(static_cast<float>(-std::log(i / 20000.0)));
  values.push_back(100);
  o.add(floats(values));
  const Range r = o.range(RangeMethod::kKl, 256);
  EXPECT_LT(r.high, 60);
  EXPECT_GT(r.high, 5);
}

TEST(Observer, NamesAreChecked) {
  EXPECT_EQ(parse_range_method("kl"), RangeMethod::kKl);
  try {
    parse_range_method("min_maks");
    FAIL();
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), ErrorCode::kUsage);
    EXPECT_NE(std::string(e.what()).find("did you mean 'min_max'?"), std::string::npos);
  }
}

}  // namespace
}  // namespace paddle::quant
