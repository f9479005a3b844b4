// Integers of weights: scales by tensor, channel and group, searched scales, GPTQ and descent.

#include "quant_common/weights.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "quant/rounding.h"

namespace paddle::quant {
namespace {

WeightRows random_rows(int64_t channels, int64_t features, uint32_t seed) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal;
  WeightRows out{channels, features, {}};
  for (int64_t i = 0; i < channels * features; ++i) out.values.push_back(normal(random));
  return out;
}

/// Moments of inputs whose features are correlated.
Moments random_moments(int64_t features, uint32_t seed) {
  std::mt19937 random(seed);
  std::normal_distribution<double> normal;
  Moments out{features, std::vector<double>(static_cast<size_t>(features * features)),
              std::vector<double>(static_cast<size_t>(features))};
  constexpr int kSamples = 200;
  for (int s = 0; s < kSamples; ++s) {
    const double common = normal(random);
    std::vector<double> x;
    for (int64_t f = 0; f < features; ++f) x.push_back(common + 0.5 * normal(random));
    for (int64_t i = 0; i < features; ++i)
      for (int64_t j = 0; j < features; ++j)
        out.products[static_cast<size_t>(i * features + j)] +=
            x[static_cast<size_t>(i)] * x[static_cast<size_t>(j)] / kSamples;
  }
  return out;
}

double squared_error(const WeightRows& rows, const QuantizedWeight& weight) {
  const WeightRows found = weight.dequantized();
  double sum = 0;
  for (size_t i = 0; i < rows.values.size(); ++i)
    sum += std::pow(static_cast<double>(rows.values[i]) - found.values[i], 2);
  return sum;
}

TEST(Weights, RowsOfBothLayouts) {
  const Array weight = Array::from<float>({1, 2, 3, 4, 5, 6}, {2, 3});
  const WeightRows first = weight_rows(weight, ChannelAxis::kFirst),
                   last = weight_rows(weight, ChannelAxis::kLast);
  EXPECT_EQ(first.channels, 2);
  EXPECT_EQ(first.values, (std::vector<float>{1, 2, 3, 4, 5, 6}));
  EXPECT_EQ(last.channels, 3);
  EXPECT_EQ(last.values, (std::vector<float>{1, 4, 2, 5, 3, 6}));
  const Array back = weight_array(last, weight.shape, ChannelAxis::kLast);
  for (int64_t i = 0; i < 6; ++i) EXPECT_EQ(back.number(i), weight.number(i));
}

TEST(Weights, SymmetricChannelsHoldTheLargestMagnitude) {
  WeightFormat format;
  const WeightRows rows{2, 2, {1.27f, -0.5f, -12.7f, 0.1f}};
  const QuantizedWeight q = round_to_nearest(rows, format);
  EXPECT_EQ(q.integers, (std::vector<int8_t>{127, -50, -127, 1}));
  EXPECT_FLOAT_EQ(q.scales.scales[0], 0.01f);
  EXPECT_FLOAT_EQ(q.scales.scales[1], 0.1f);
}

TEST(Weights, AsymmetricRangesHaveAnExactZero) {
  WeightFormat format;
  format.bits = 4;
  format.symmetric = false;
  const WeightRows rows{1, 4, {0.f, 1.f, 7.f, 15.f}};
  const QuantizedWeight q = round_to_nearest(rows, format);
  EXPECT_FLOAT_EQ(q.scales.scales[0], 1);
  EXPECT_EQ(q.scales.zeros[0], -8);
  EXPECT_EQ(q.integers, (std::vector<int8_t>{-8, -7, -1, 7}));
  EXPECT_EQ(q.dequantized().values, rows.values);
}

TEST(Weights, ZerosAndTinyWeightsStayFinite) {
  for (const bool symmetric : {true, false}) {
    WeightFormat format;
    format.symmetric = symmetric;
    const QuantizedWeight q = round_to_nearest({1, 3, {0.f, 0.f, 1e-45f}}, format);
    for (const float value : q.dequantized().values) EXPECT_EQ(value, 0);
  }
}

TEST(Weights, SmallerGroupsAndSearchedScalesLoseLess) {
  const WeightRows rows = random_rows(8, 256, 1);
  WeightFormat format;
  format.bits = 4;
  format.per = Granularity::kTensor;
  const double tensor = squared_error(rows, round_to_nearest(rows, format));
  format.per = Granularity::kChannel;
  const double channel = squared_error(rows, round_to_nearest(rows, format));
  format.per = Granularity::kGroup;
  format.group = 32;
  const double group = squared_error(rows, round_to_nearest(rows, format));
  format.search = true;
  const double searched = squared_error(rows, round_to_nearest(rows, format));
  EXPECT_LT(channel, tensor);
  EXPECT_LT(group, 0.8 * channel);
  EXPECT_LT(searched, 0.95 * group);
}

TEST(Rounding, MethodsLowerTheErrorOfResults) {
  const WeightRows rows = random_rows(6, 64, 2);
  const Moments moments = random_moments(64, 3);
  WeightFormat format;
  format.bits = 4;
  const QuantizedWeight nearest = round_to_nearest(rows, format);
  const double plain = rounding_error(rows, nearest, moments);
  const QuantizedWeight by_gptq = gptq(rows, format, moments);
  EXPECT_LT(rounding_error(rows, by_gptq, moments), 0.5 * plain);
  const QuantizedWeight descended = descend(rows, nearest, moments);
  EXPECT_LT(rounding_error(rows, descended, moments), 0.5 * plain);
  EXPECT_LE(rounding_error(rows, descend(rows, by_gptq, moments), moments),
            rounding_error(rows, by_gptq, moments));
  for (const int8_t q : descended.integers) {
    EXPECT_GE(q, -7);
    EXPECT_LE(q, 7);
  }
}

TEST(Weights, SevenBitsAreStoredInBytes) {
  WeightFormat format;
  format.bits = 7;
  const QuantizedWeight q = round_to_nearest({1, 2, {6.3f, -6.3f}}, format);
  EXPECT_EQ(q.integers, (std::vector<int8_t>{63, -63}));
  EXPECT_EQ(format.storage_bits(), 8);
}

TEST(Rounding, WeightsMakeUpForChangedInputs) {
  // The quantized model gives x' = A x, so the compensated weight is W A⁻¹.
  constexpr int64_t n = 6;
  const WeightRows rows = random_rows(3, n, 5);
  std::mt19937 random(6);
  std::normal_distribution<double> normal;
  std::vector<double> a(n * n);
  for (int64_t i = 0; i < n * n; ++i)
    a[static_cast<size_t>(i)] = 0.1 * normal(random) + (i % (n + 1) == 0);
  PairedMoments moments{{n, std::vector<double>(n * n), {}}, std::vector<double>(n * n)};
  constexpr int kSamples = 400;
  for (int s = 0; s < kSamples; ++s) {
    std::vector<double> x(n), changed(n, 0);
    for (double& each : x) each = normal(random);
    for (size_t i = 0; i < n; ++i)
      for (size_t j = 0; j < n; ++j) changed[i] += a[i * n + j] * x[j];
    for (size_t i = 0; i < n; ++i)
      for (size_t j = 0; j < n; ++j) {
        moments.quantized.products[i * n + j] += changed[i] * changed[j] / kSamples;
        moments.mixed[i * n + j] += x[i] * changed[j] / kSamples;
      }
  }
  const WeightRows found = compensated(rows, moments, 1e-9);
  for (int64_t c = 0; c < rows.channels; ++c)
    for (int64_t j = 0; j < n; ++j) {
      double product = 0;  // of the row with A
      for (int64_t i = 0; i < n; ++i)
        product += found.row(c)[i] * a[static_cast<size_t>(i * n + j)];
      EXPECT_NEAR(product, rows.row(c)[j], 1e-4);
    }
}

TEST(Rounding, FeaturesThatAreAlwaysZeroDoNotMatter) {
  const WeightRows rows = random_rows(2, 16, 4);
  Moments moments{16, std::vector<double>(256, 0), std::vector<double>(16, 0)};
  WeightFormat format;
  const QuantizedWeight nearest = round_to_nearest(rows, format);
  EXPECT_EQ(gptq(rows, format, moments).integers, nearest.integers);
  EXPECT_EQ(descend(rows, nearest, moments).integers, nearest.integers);
}

}  // namespace
}  // namespace paddle::quant
