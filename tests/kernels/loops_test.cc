// Element loops and conversions: values do not depend on an element's position, integers never
// trap, and conversions round as documented.

#include "kernels/elementwise/loops.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

#include "kernels/common/convert.h"
#include "kernels/elementwise/special_functions.h"
#include "kernels/pool/pool_simd.h"

namespace paddle::cpu {
namespace {

class PositionTest : public testing::TestWithParam<const char*> {};

TEST_P(PositionTest, ValueDoesNotDependOnPosition) {
  const Loop loop = float_loop(GetParam(), DType::kF32);
  ASSERT_NE(loop, nullptr);
  std::vector<float> x(67, 0.37f), y(67, -1.0f);
  const double params[] = {0.5, 0.25, 1};
  for (int64_t n = 1; n <= 67; ++n) {
    const void* in[] = {x.data(), x.data(), x.data()};
    loop(in, y.data(), n, params);
    for (int64_t i = 0; i < n; ++i) EXPECT_EQ(y[static_cast<size_t>(i)], y[0]) << n << " at " << i;
  }
}
INSTANTIATE_TEST_SUITE_P(Loops, PositionTest,
                         testing::Values("exp", "log", "tanh", "erf", "sin", "pow", "sigmoid",
                                         "gelu", "gelu_tanh", "silu", "softplus", "mish",
                                         "logaddexp"));

// libmvec computes values at the ends of the range in scalar code; the results must equal std::exp.
template <class T>
void expect_exp(DType dtype, const std::vector<T>& x) {
  std::vector<T> y(x.size());
  const void* in[] = {x.data()};
  float_loop("exp", dtype)(in, y.data(), static_cast<int64_t>(x.size()), nullptr);
  for (size_t i = 0; i < x.size(); ++i) {
    const T expected = std::exp(x[i]);
    if (std::isnan(expected))
      EXPECT_TRUE(std::isnan(y[i]));
    else if (!std::isnormal(expected))
      EXPECT_EQ(y[i], expected) << x[i];
    else
      EXPECT_NEAR(y[i] / expected, 1, 1e-6) << x[i];
  }
}

TEST(Loops, ExpAtTheEndsOfTheRange) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  expect_exp<float>(DType::kF32, {-INFINITY, -3.4e38f, -1e4f, -103.98f, -103.97f, -103.9f, -95,
                                  -87.4f, -87.3f, 0, 88.7f, 88.73f, 1e4f, INFINITY, NAN});
  expect_exp<double>(DType::kF64, {-kInfinity, -1e308, -745.14, -745.13, -720, -708.3, 0, 709.78,
                                   709.79, 1e4, kInfinity, std::nan("")});
}

TEST(Loops, WriteNothingPastTheEnd) {
  std::vector<float> x(40, 1.0f);
  for (int64_t n = 0; n < 40; ++n) {
    std::vector<float> y(41, -7.0f);
    const void* in[] = {x.data()};
    float_loop("exp", DType::kF32)(in, y.data(), n, nullptr);
    for (size_t i = static_cast<size_t>(n); i < y.size(); ++i) EXPECT_EQ(y[i], -7.0f);
  }
}

TEST(Loops, MaximumKeepsNanAndFmaxIgnoresIt) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const float a[] = {nan, 1, nan, 2}, b[] = {1, nan, nan, 3};
  const void* in[] = {a, b};
  float y[4];
  float_loop("maximum", DType::kF32)(in, y, 4, nullptr);
  EXPECT_TRUE(std::isnan(y[0]) && std::isnan(y[1]) && std::isnan(y[2]));
  EXPECT_EQ(y[3], 3);
  float_loop("fmax", DType::kF32)(in, y, 4, nullptr);
  EXPECT_EQ(y[0], 1);
  EXPECT_EQ(y[1], 1);
  EXPECT_TRUE(std::isnan(y[2]));
  EXPECT_EQ(y[3], 3);
}

TEST(Loops, IntegerDivisionNeverTraps) {
  const int32_t least = std::numeric_limits<int32_t>::min();
  const int32_t a[] = {7, -7, 7, -7, 5, least}, b[] = {2, 2, -2, -2, 0, -1};
  const void* in[] = {a, b};
  int32_t y[6];
  integer_loop("floor_divide", DType::kI32)(in, y, 6, nullptr);
  EXPECT_EQ(std::vector<int32_t>(y, y + 6), (std::vector<int32_t>{3, -4, -4, 3, 0, least}));
  integer_loop("remainder", DType::kI32)(in, y, 6, nullptr);
  EXPECT_EQ(std::vector<int32_t>(y, y + 6), (std::vector<int32_t>{1, 1, -1, -1, 0, 0}));
}

TEST(Loops, IntegerPowersAndShifts) {
  const int64_t a[] = {3, -1, -1, 2, 0}, b[] = {4, -3, -2, -1, 0};
  const void* in[] = {a, b};
  int64_t y[5];
  integer_loop("pow", DType::kI64)(in, y, 5, nullptr);
  EXPECT_EQ(std::vector<int64_t>(y, y + 5), (std::vector<int64_t>{81, -1, 1, 0, 1}));
  const int64_t c[] = {1, -8, 1, -1}, d[] = {3, 1, 64, 64};
  const void* shifted[] = {c, d};
  integer_loop("bitwise_left_shift", DType::kI64)(shifted, y, 4, nullptr);
  EXPECT_EQ(std::vector<int64_t>(y, y + 3), (std::vector<int64_t>{8, -16, 0}));
  integer_loop("bitwise_right_shift", DType::kI64)(shifted, y, 4, nullptr);
  EXPECT_EQ(std::vector<int64_t>(y, y + 4), (std::vector<int64_t>{0, -4, 0, -1}));
}

TEST(Convert, FloatsToIntegersTruncateAndNeverTrap) {
  const float x[] = {2.9f, -2.9f, std::numeric_limits<float>::quiet_NaN(), 1e30f};
  int64_t y[4];
  convert_fn(DType::kF32, DType::kI64)(x, 1, y, 4);
  EXPECT_EQ(y[0], 2);
  EXPECT_EQ(y[1], -2);
  EXPECT_EQ(y[2], std::numeric_limits<int64_t>::min());
  EXPECT_EQ(y[3], std::numeric_limits<int64_t>::min());
}

TEST(Convert, SixteenBitFloatsRoundToEvenInVectorsAndTails) {
  std::vector<float> x(
      37,
      1.0f + 0x1p-9f);  // halfway between two neighbors in bfloat16: 1 and 1 + 2^-7
  std::vector<bfloat16> y(37);
  convert_fn(DType::kF32, DType::kBF16)(x.data(), 1, y.data(), 37);
  for (const bfloat16 v : y) EXPECT_EQ(static_cast<float>(v), 1.0f);
  std::fill(x.begin(), x.end(), 1.0f + 3 * 0x1p-11f);  // halfway in float16, next to an odd value
  std::vector<float16> h(37);
  convert_fn(DType::kF32, DType::kF16)(x.data(), 1, h.data(), 37);
  for (const float16 v : h) EXPECT_EQ(static_cast<float>(v), 1.0f + 2 * 0x1p-10f);
}

// Values from SciPy 1.17 (scipy.special), in full precision.
TEST(SpecialFunctions, AgreeWithReference) {
  EXPECT_NEAR(digamma(0.25), -4.2274535333762655, 1e-14);
  EXPECT_NEAR(digamma(-1.5), 0.7031566406452434, 1e-14);
  EXPECT_NEAR(polygamma(1, 0.7), 2.8340491566946113, 1e-13);
  EXPECT_NEAR(polygamma(2, 3.5), -0.1082040516417274, 1e-13);
  EXPECT_NEAR(erf_inverse(0.3), 0.2724627147267544, 1e-15);
  EXPECT_NEAR(erf_inverse(0.9999), 2.7510639057120803, 1e-13);
  EXPECT_NEAR(bessel_i0(2.5), 3.289839144050123, 1e-14);
  EXPECT_NEAR(bessel_i0e(40.0), 0.06327827987523532, 1e-15);
  EXPECT_NEAR(bessel_i1(-2.5), -2.5167162452886984, 1e-14);
  EXPECT_NEAR(bessel_i1e(40.0), 0.06248222907444206, 1e-13);
  EXPECT_NEAR(gamma_p(2.0, 3.0), 0.8008517265285442, 1e-14);
  EXPECT_NEAR(gamma_q(0.5, 4.0), 0.004677734981047276, 1e-15);
  EXPECT_TRUE(std::isinf(erf_inverse(1.0)));
  EXPECT_TRUE(std::isnan(erf_inverse(1.5)));
}

/// Indices of the maxima of 2 x 2 windows: the first of equal ones, the last NaN.
int32_t place_of_largest(const float* top, const float* bottom, int32_t j, int32_t width) {
  float value = -std::numeric_limits<float>::infinity();
  int32_t place = 2 * j;
  for (const int32_t step : {0, 1, width, width + 1}) {
    const float x = step < width ? top[2 * j + step] : bottom[2 * j + step - width];
    if (!(x > value || x != x)) continue;
    value = x;
    place = 2 * j + step;
  }
  return place;
}

TEST(PoolLoops, MaxPool2x2AndIndices) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  const float values[] = {1, 1, -2, 0, -0.0f, 3, std::nanf(""), kInfinity, -kInfinity, 3, 2, -5};
  constexpr int64_t kRows = 3;
  uint32_t seed = 1;
  for (int32_t n = 0; n < 70; ++n) {
    const int32_t width = 2 * n + n % 2;
    std::vector<float> x(static_cast<size_t>(2 * kRows * width + 1));
    for (float& value : x) {
      seed = seed * 1664525u + 1013904223u;
      value = values[(seed >> 16) % std::size(values)];
    }
    std::vector<float> out(static_cast<size_t>(kRows * n)), plain = out, back(x.size(), 7);
    std::vector<int32_t> places(out.size());
    max_pool_2x2(x.data(), width, kRows, n, out.data(), places.data());
    max_pool_2x2(x.data(), width, kRows, n, plain.data(), nullptr);
    for (int32_t r = 0; r < kRows; ++r) {
      const int32_t first = 2 * r * width;
      const float *top = x.data() + first, *bottom = top + width;
      for (int32_t j = 0; j < n; ++j) {
        const size_t at = static_cast<size_t>(r * n + j);
        const int32_t place = first + place_of_largest(top, bottom, j, width);
        EXPECT_EQ(places[at], place) << n << " " << j;
        for (const float y : {out[at], plain[at]}) {
          EXPECT_TRUE(y == x[static_cast<size_t>(place)] || y != y) << n << " " << j << ": " << y;
          EXPECT_EQ(std::isnan(y), std::isnan(x[static_cast<size_t>(place)])) << n << " " << j;
        }
        out[at] = static_cast<float>(at + 1);
      }
    }
    EXPECT_TRUE(max_pool_2x2_grad(out.data(), places.data(), kRows, n, width, back.data()));
    for (int32_t r = 0; r < kRows; ++r)
      for (int32_t j = 0; j < n; ++j)
        for (const int32_t step : {0, 1, width, width + 1}) {
          const size_t at = static_cast<size_t>(r * n + j);
          const int32_t place = 2 * r * width + 2 * j + step;
          EXPECT_EQ(back[static_cast<size_t>(place)], places[at] == place ? out[at] : 0);
        }
    if (n == 0) continue;
    places[static_cast<size_t>(n / 2)] = -1;
    EXPECT_FALSE(max_pool_2x2_grad(out.data(), places.data(), kRows, n, width, back.data()));
  }
}

}  // namespace
}  // namespace paddle::cpu
