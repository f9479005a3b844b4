// Winograd convolution against direct sums in f64: sizes that tiles do not divide, padding, and
// epilogues.

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>

#include "kernels/conv/winograd.h"
#include "support/convolutions.h"
#include "support/numbers.h"

namespace paddle {
namespace {

using namespace testing_support;
using cpu::BoundEpilogue;
using cpu::ConvShape;
using cpu::Winograd;

/// 3 x 3 kernels, channels last.
struct Case {
  int64_t batch, height, width, in, out;
  int64_t top = 1, bottom = 1, left = 1, right = 1;
  int64_t planes = 1, kernel_depth = 1, front = 0, back = 0;

  ConvShape shape() const {
    ConvShape s =
        Convolution{batch, in, out, height, width, 3, 3, 1, 1, top, bottom, left, right, true}
            .shape();
    s.depth = planes;
    s.kernel_depth = kernel_depth;
    s.front = front;
    s.back = back;
    s.out_depth = planes + front + back - kernel_depth + 1;
    return s;
  }
};

/// Direct sums in f64; weights are [out, in, planes, 3, 3].
std::vector<double> sums(const ConvShape& s, const std::vector<float>& x,
                         const std::vector<float>& w) {
  const auto sum_at = [&](int64_t n, int64_t p, int64_t r, int64_t c, int64_t k) {
    double sum = 0;
    for (int64_t i = 0; i < s.kernel_depth * 9; ++i) {
      const int64_t plane = p + i / 9 - s.front, row = r + i % 9 / 3 - s.top,
                    column = c + i % 3 - s.left;
      if (plane < 0 || plane >= s.depth || row < 0 || row >= s.height || column < 0 ||
          column >= s.width)
        continue;
      const int64_t pixel = ((n * s.depth + plane) * s.height + row) * s.width + column;
      for (int64_t q = 0; q < s.in_channels; ++q)
        sum += static_cast<double>(x[static_cast<size_t>(pixel * s.in_channels + q)]) *
               w[static_cast<size_t>((k * s.in_channels + q) * s.kernel_depth * 9 + i)];
    }
    return sum;
  };
  std::vector<double> y;
  for (int64_t n = 0; n < s.batch; ++n)
    for (int64_t p = 0; p < s.out_depth; ++p)
      for (int64_t r = 0; r < s.out_height; ++r)
        for (int64_t c = 0; c < s.out_width; ++c)
          for (int64_t k = 0; k < s.out_channels; ++k) y.push_back(sum_at(n, p, r, c, k));
  return y;
}

/// Prepacked weights and weights transformed in the run must give the same bits.
std::vector<float> computed(const ConvShape& s, int64_t tile, const void* w,
                            const std::vector<float>& x, const BoundEpilogue& epilogue = {}) {
  std::vector<float> results[2];
  for (const bool skip_prepack : {false, true}) {
    const Winograd convolution(s, tile, w, skip_prepack);
    const auto scratch = Storage::allocate(convolution.scratch_bytes());
    std::fill_n(reinterpret_cast<float*>(scratch->data()),
                convolution.scratch_bytes() / sizeof(float),
                std::numeric_limits<float>::quiet_NaN());
    std::vector<float>& y = results[skip_prepack];
    y.resize(static_cast<size_t>(s.batch * s.positions() * s.out_channels), -7);
    convolution.run(x.data(), epilogue, y.data(), scratch->data());
  }
  EXPECT_EQ(0,
            std::memcmp(results[0].data(), results[1].data(), results[0].size() * sizeof(float)));
  return results[0];
}

/// Relative to the largest result.
double difference(const std::vector<float>& got, const std::vector<double>& wanted) {
  double most = 0, largest = 0;
  EXPECT_EQ(got.size(), wanted.size());
  for (size_t i = 0; i < wanted.size(); ++i) {
    if (std::isnan(got[i])) return got[i];
    most = std::max(most, std::abs(got[i] - wanted[i]));
    largest = std::max(largest, std::abs(wanted[i]));
  }
  return most / largest;
}

class Tiles : public testing::TestWithParam<int64_t> {};

TEST_P(Tiles, MatchDirectSums) {
  const Case cases[] = {
      {1, 1, 1, 16, 16},
      {1, 2, 3, 16, 32},
      {2, 4, 4, 32, 16},
      {1, 5, 9, 48, 80},
      {3, 7, 7, 64, 64},
      {2, 13, 6, 16, 144},
      {1, 3, 3, 16, 16, 0, 0, 0, 0},
      {2, 8, 11, 16, 48, 0, 2, 3, 0},
      {1, 4, 5, 16, 16, 7, 0, 0, 9},
      {1, 60, 61, 16, 16},
      {9, 14, 14, 32, 32},
      // input planes, kernel planes, and padding before and after
      {1, 6, 7, 16, 32, 1, 1, 1, 1, 5, 3, 1, 1},
      {2, 9, 5, 32, 16, 1, 0, 2, 1, 4, 2, 0, 0},
      {1, 7, 7, 16, 16, 1, 1, 1, 1, 1, 3, 1, 1},
      {3, 4, 4, 16, 16, 1, 1, 1, 1, 2, 3, 1, 1},
      {1, 8, 8, 16, 80, 1, 1, 1, 1, 2, 5, 4, 3},
      {1, 33, 40, 16, 16, 1, 1, 1, 1, 7, 3, 2, 1},
  };
  for (const Case& c : cases) {
    const ConvShape s = c.shape();
    const std::vector<float> x = numbers(c.batch * c.planes * c.height * c.width * c.in, 1);
    const std::vector<float> w = numbers(c.out * c.in * c.kernel_depth * 9, 2);
    const double error = difference(computed(s, GetParam(), w.data(), x), sums(s, x, w));
    EXPECT_LT(error, GetParam() == 2 ? 1.5e-6 : 4e-6)
        << c.batch << " x " << c.planes << " x " << c.height << " x " << c.width << ", " << c.in
        << " to " << c.out;
  }
}

TEST_P(Tiles, ApplyEpilogues) {
  const ConvShape s = Case{2, 6, 7, 16, 32}.shape();
  const std::vector<float> x = numbers(2 * 6 * 7 * 16, 3), w = numbers(32 * 16 * 9, 4),
                           bias = numbers(32, 5), residual = numbers(2 * 6 * 7 * 32, 6);
  std::vector<double> wanted = sums(s, x, w);
  for (size_t i = 0; i < wanted.size(); ++i) wanted[i] += bias[i % 32] + residual[i];
  BoundEpilogue epilogue;
  epilogue.bias = bias.data();
  epilogue.residual = residual.data();
  EXPECT_LT(difference(computed(s, GetParam(), w.data(), x, epilogue), wanted), 4e-6);

  const std::vector<double> unbound = wanted;
  for (double& v : wanted) v = std::max(v, 0.0);
  epilogue.clamp_min = 0;
  EXPECT_LT(difference(computed(s, GetParam(), w.data(), x, epilogue), wanted), 4e-6);

  wanted = unbound;
  for (double& v : wanted) v = 0.25 * v + 2;
  epilogue.clamp_min = -std::numeric_limits<float>::infinity();
  const double params[] = {0.25, 2};
  epilogue.activation_params = params;
  epilogue.activation = multiply_and_add;
  EXPECT_LT(difference(computed(s, GetParam(), w.data(), x, epilogue), wanted), 4e-6);
}

TEST_P(Tiles, KeepNaNWithinTiles) {
  const ConvShape s = Case{1, 24, 24, 16, 16}.shape();
  std::vector<float> x = numbers(24 * 24 * 16, 7);
  const std::vector<float> w = numbers(16 * 16 * 9, 8);
  x[(12 * 24 + 12) * 16] = std::numeric_limits<float>::quiet_NaN();
  BoundEpilogue epilogue;
  epilogue.clamp_min = 0;
  const std::vector<float> y = computed(s, GetParam(), w.data(), x, epilogue);
  for (int64_t r = 0; r < 24; ++r)
    for (int64_t c = 0; c < 24; ++c) {
      const float v = y[static_cast<size_t>((r * 24 + c) * 16)];
      if (std::abs(r - 12) <= 1 && std::abs(c - 12) <= 1) {
        EXPECT_TRUE(std::isnan(v)) << r << ", " << c;
      }
      if (std::abs(r - 12) > 6 || std::abs(c - 12) > 6) {
        EXPECT_FALSE(std::isnan(v)) << r << ", " << c;
      }
    }
}

TEST_P(Tiles, ReadWeightsAtAnyAddress) {
  const ConvShape s = Case{1, 5, 5, 16, 16}.shape();
  const std::vector<float> x = numbers(5 * 5 * 16, 9), w = numbers(16 * 16 * 9, 10);
  std::vector<char> bytes(w.size() * sizeof(float) + 3);
  std::memcpy(bytes.data() + 3, w.data(), w.size() * sizeof(float));
  EXPECT_EQ(computed(s, GetParam(), bytes.data() + 3, x), computed(s, GetParam(), w.data(), x));
}

INSTANTIATE_TEST_SUITE_P(Sizes, Tiles, testing::Values(2, 4));

TEST(Winograd, IsChosenWhereItIsFaster) {
  if (cpu::vector_bytes() < 32) GTEST_SKIP() << "needs AVX2";
  const auto best = [](const Case& c) { return Winograd::best_tile(c.shape(), false); };
  EXPECT_EQ(best({1, 56, 56, 64, 64}), 4);
  EXPECT_EQ(best({16, 14, 14, 256, 256}), 4);
  EXPECT_EQ(best({1, 14, 14, 256, 256}), 2);  // few tiles per weight
  EXPECT_EQ(best({1, 7, 7, 512, 512}), 0);
  EXPECT_EQ(best({1, 56, 56, 64, 40}), 0);  // channels must fill vectors
  ConvShape s = Case{1, 56, 56, 64, 64}.shape();
  s.stride_height = 2;
  EXPECT_EQ(Winograd::best_tile(s, false), 0);
  s = Case{1, 56, 56, 64, 64}.shape();
  s.groups = 2;
  EXPECT_EQ(Winograd::best_tile(s, false), 0);
  EXPECT_EQ(best({1, 56, 56, 64, 64, 1, 1, 1, 1, 8, 3, 1, 1}), 4);
  EXPECT_EQ(best({1, 7, 7, 512, 512, 1, 1, 1, 1, 1, 3, 1, 1}), 2);  // a third of the weights
}

}  // namespace
}  // namespace paddle
