// CHWN and direct convolution against plain sums in f64: odd sizes, strides, padding, batches and
// rows that do not fill vectors, for one thread and several, for each instruction set.

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "hwy/targets.h"

#include "base/parallel.h"
#include "kernels/conv/chwn.h"
#include "kernels/conv/chwn_simd.h"
#include "kernels/conv/direct.h"
#include "support/convolutions.h"
#include "support/numbers.h"
#include "tensor/tensor.h"

namespace paddle {
namespace {

using namespace testing_support;
using cpu::BoundEpilogue;
using cpu::ChwnConvolution;
using cpu::ChwnWeightGrad;
using cpu::ConvShape;
using cpu::DirectConvolution;

constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();

std::string text(const Convolution& c) {
  return str(c.batch, " images ", c.height, " x ", c.width, ", ", c.in, " to ", c.out, " by ",
             c.kernel_height, " x ", c.kernel_width, ", stride ", c.stride_height, " x ",
             c.stride_width, ", padding ", c.top, " ", c.bottom, " ", c.left, " ", c.right);
}

const Convolution kCases[] = {
    {1, 1, 1, 1, 1, 1, 1},
    {16, 1, 6, 28, 28, 3, 3, 1, 1, 1, 1, 1, 1},
    {17, 6, 16, 14, 14, 5, 5},
    {33, 3, 5, 9, 1, 3, 1, 1, 1, 1, 1},
    {5, 2, 3, 1, 13, 1, 4, 1, 1, 0, 0, 1, 3},
    {32, 4, 7, 3, 2, 5, 6, 1, 1, 2, 3, 4, 1},
    {20, 17, 2, 6, 5, 3, 3, 1, 1, 1, 0, 2, 1},
    {64, 2, 9, 7, 6, 3, 2, 1, 1, 0, 0, 0, 0},
    {48, 9, 17, 4, 4, 2, 2, 1, 1, 1, 1, 0, 0},
    {3, 5, 4, 2, 2, 2, 2, 1, 1, 6, 7, 5, 4},
    {16, 3, 12, 11, 10, 3, 5, 2, 2, 1, 1, 2, 2},
    {31, 1, 13, 8, 9, 2, 3, 3, 2, 0, 1, 1, 0},
    {12, 8, 8, 7, 11, 4, 1, 1, 3, 2, 1, 0, 0},
    {40, 11, 10, 5, 5, 1, 1},
    {16, 2, 3, 70, 33, 3, 3, 1, 1, 1, 1, 1, 1},
    {1, 1, 6, 28, 28, 5, 5, 1, 1, 2, 2, 2, 2},
    {2, 3, 9, 5, 50, 3, 3, 2, 1, 1, 0, 1, 2},
    {1, 2, 17, 40, 16, 2, 1, 1, 1, 0, 1, 0, 0},
};

struct Operands {
  explicit Operands(const ConvShape& s)
      : x(numbers(s.batch * s.in_channels * s.height * s.width, 1)),
        weight(numbers(s.out_channels * s.window_size(), 2)),
        grad(numbers(s.batch * s.out_channels * s.positions(), 3)) {}
  std::vector<float> x, weight, grad;
};

/// Calls `body(index in x, in the weight, in the output)` for every multiplication of the
/// convolution.
template <class Body>
void products(const ConvShape& s, Body body) {
  for (int64_t n = 0; n < s.batch; ++n)
    for (int64_t o = 0; o < s.out_channels; ++o)
      for (int64_t c = 0; c < s.in_channels; ++c)
        for (int64_t p = 0; p < s.positions(); ++p)
          for (int64_t k = 0; k < s.kernel_height * s.kernel_width; ++k) {
            const int64_t i = k / s.kernel_width, j = k % s.kernel_width;
            const int64_t row = p / s.out_width * s.stride_height - s.top + i;
            const int64_t column = p % s.out_width * s.stride_width - s.left + j;
            if (row < 0 || row >= s.height || column < 0 || column >= s.width) continue;
            body(
                static_cast<size_t>(((n * s.in_channels + c) * s.height + row) * s.width + column),
                static_cast<size_t>(o * s.window_size() + c * s.kernel_height * s.kernel_width + k),
                static_cast<size_t>((n * s.out_channels + o) * s.positions() + p));
          }
}

/// A sum in f64 and the sum of the magnitudes of its terms, to which its error is compared.
struct Sum {
  double value = 0, size = 0;
  void add(double term) {
    value += term;
    size += std::abs(term);
  }
};

void expect_sums(const std::vector<float>& got, const std::vector<Sum>& wanted) {
  ASSERT_EQ(got.size(), wanted.size());
  for (size_t i = 0; i < wanted.size(); ++i) {
    if (std::isnan(wanted[i].value)) {
      ASSERT_TRUE(std::isnan(got[i])) << "at " << i;
    } else {
      ASSERT_NEAR(got[i], wanted[i].value, 1e-6 * wanted[i].size) << "at " << i;
    }
  }
}

/// The results of `run(results, scratch)`, which must neither read uninitialized memory nor write
/// out of bounds.
template <class Run>
std::vector<float> computed(size_t count, size_t scratch_bytes, Run run) {
  constexpr size_t kGuard = 64;
  const auto guarded = [](size_t n) { return std::vector<float>(n + kGuard, kNaN); };
  std::vector<float> results = guarded(count);
  const auto scratch = Storage::allocate(scratch_bytes + kGuard);
  std::fill_n(reinterpret_cast<float*>(scratch->data()), scratch_bytes / sizeof(float), kNaN);
  std::fill_n(scratch->data() + scratch_bytes, kGuard, std::byte{0x5a});
  run(results.data(), scratch->data());
  for (size_t i = 0; i < kGuard; ++i) {
    EXPECT_TRUE(std::isnan(results[count + i]));
    EXPECT_EQ(scratch->data()[scratch_bytes + i], std::byte{0x5a});
  }
  results.resize(count);
  return results;
}

std::vector<float> forward(const auto& convolution, const Operands& at,
                           const BoundEpilogue& epilogue = {}) {
  return computed(at.grad.size(), convolution.scratch_bytes(), [&](float* y, std::byte* scratch) {
    convolution.run(at.x.data(), at.weight.data(), epilogue, y, scratch);
  });
}

void expect_all(const ConvShape& s, const Operands& at) {
  std::vector<Sum> y(at.grad.size()), dx(at.x.size()), dw(at.weight.size());
  products(s, [&](size_t x, size_t w, size_t out) {
    y[out].add(static_cast<double>(at.x[x]) * at.weight[w]);
    dx[x].add(static_cast<double>(at.grad[out]) * at.weight[w]);
    dw[w].add(static_cast<double>(at.grad[out]) * at.x[x]);
  });
  expect_sums(forward(ChwnConvolution::forward(s), at), y);
  // Direct convolution also multiplies weights with the zeros of the padding.
  const bool finite =
      std::none_of(at.weight.begin(), at.weight.end(), [](float v) { return v != v; });
  if (s.stride_width == 1 && finite) expect_sums(forward(DirectConvolution(s), at), y);
  const ChwnWeightGrad weight_grad(s);
  expect_sums(computed(dw.size(), weight_grad.scratch_bytes(),
                       [&](float* out, std::byte* scratch) {
                         weight_grad.run(at.x.data(), at.grad.data(), out, scratch);
                       }),
              dw);
  if (s.stride_height > 1 || s.stride_width > 1) return;
  const auto input_grad = ChwnConvolution::input_grad(s);
  expect_sums(computed(dx.size(), input_grad.scratch_bytes(),
                       [&](float* out, std::byte* scratch) {
                         input_grad.run(at.grad.data(), at.weight.data(), {}, out, scratch);
                       }),
              dx);
}

struct Machine {
  int threads;
  int64_t without;  ///< disabled instruction sets
};

constexpr int64_t kFromAvx512 = HWY_AVX3 | (HWY_AVX3 - 1), kFromAvx2 = HWY_AVX2 | (HWY_AVX2 - 1);

class SmallChannelConv : public testing::TestWithParam<Machine> {
 protected:
  void SetUp() override {
    set_thread_count(GetParam().threads);
    hwy::DisableTargets(GetParam().without);
  }
  void TearDown() override {
    set_thread_count(available_cores());
    hwy::DisableTargets(0);
  }
};

TEST_P(SmallChannelConv, MatchPlainSums) {
  for (const Convolution& c : kCases) {
    SCOPED_TRACE(text(c));
    const ConvShape s = c.shape();
    expect_all(s, Operands(s));
  }
}

// Of each group, channels first and last, with an epilogue.
TEST_P(SmallChannelConv, MatchPlainSumsInGroups) {
  for (const Convolution& given :
       {Convolution{2, 6, 9, 5, 20, 3, 3, 1, 1, 1, 1, 1, 1}, Convolution{1, 8, 8, 1, 100, 1, 33},
        Convolution{3, 12, 6, 9, 11, 3, 2, 2, 1, 1, 0, 0, 1}})
    for (const bool last : {false, true}) {
      Convolution c = given;
      c.channels_last = last;
      c.groups = c.in == 8 ? 2 : 3;
      SCOPED_TRACE(str(text(c), last ? ", channels last" : ""));
      const ConvShape s = c.shape();
      const Operands at(s);
      const std::vector<float> bias = numbers(s.out_channels, 9);
      const double params[] = {2, 0.5};
      std::vector<Sum> y(at.grad.size());
      const auto in = cpu::ImageStrides::of(s.in_channels, s.height, s.width, last),
                 out = cpu::ImageStrides::of(s.out_channels, s.out_height, s.out_width, last);
      for (int64_t n = 0; n < s.batch; ++n)
        for (int64_t o = 0; o < s.out_channels; ++o)
          for (int64_t p = 0; p < s.positions(); ++p) {
            Sum& sum =
                y[static_cast<size_t>(n * out.batch + o * out.channel + p / s.out_width * out.row +
                                      p % s.out_width * out.column)];
            sum.add(static_cast<double>(bias[static_cast<size_t>(o)]));
            const int64_t first = o / s.group_out_channels() * s.group_in_channels();
            for (int64_t k = 0; k < s.window_size(); ++k) {
              const int64_t tap = k % (s.kernel_height * s.kernel_width);
              const int64_t row = p / s.out_width * s.stride_height - s.top + tap / s.kernel_width,
                            column = p % s.out_width - s.left + tap % s.kernel_width;
              if (row < 0 || row >= s.height || column < 0 || column >= s.width) continue;
              const int64_t channel = first + k / (s.kernel_height * s.kernel_width);
              sum.add(
                  static_cast<double>(at.x[static_cast<size_t>(
                      n * in.batch + channel * in.channel + row * in.row + column * in.column)]) *
                  at.weight[static_cast<size_t>(o * s.window_size() + k)]);
            }
            sum.value = 2 * sum.value + 0.5;
            sum.size = 2 * sum.size + 0.5;
          }
      const BoundEpilogue epilogue{
          .bias = bias.data(), .activation = multiply_and_add, .activation_params = params};
      expect_sums(forward(DirectConvolution(s), at, epilogue), y);
    }
}

TEST_P(SmallChannelConv, KeepNaNLocal) {
  for (const Convolution& c : kCases) {
    SCOPED_TRACE(text(c));
    const ConvShape s = c.shape();
    for (const auto values : {&Operands::x, &Operands::weight, &Operands::grad}) {
      Operands at(s);
      (at.*values)[(at.*values).size() / 3] = kNaN;
      expect_all(s, at);
    }
  }
}

TEST_P(SmallChannelConv, ApplyEpilogues) {
  const ConvShape s = Convolution{19, 3, 11, 6, 7, 3, 3, 1, 1, 1, 1, 1, 1}.shape();
  const Operands at(s);
  const std::vector<float> bias = numbers(s.out_channels, 4);
  std::vector<Sum> wanted(at.grad.size());
  products(s, [&](size_t x, size_t w, size_t out) {
    wanted[out].add(static_cast<double>(at.x[x]) * at.weight[w]);
  });
  for (size_t i = 0; i < wanted.size(); ++i)
    wanted[i].add(bias[i / static_cast<size_t>(s.positions()) % bias.size()]);
  BoundEpilogue epilogue;
  epilogue.bias = bias.data();
  const auto expect_both = [&](const std::vector<Sum>& sums) {
    expect_sums(forward(ChwnConvolution::forward(s), at, epilogue), sums);
    expect_sums(forward(DirectConvolution(s), at, epilogue), sums);
  };
  expect_both(wanted);

  std::vector<Sum> bound = wanted;
  for (Sum& sum : bound) sum.value = std::max(sum.value, 0.0);
  epilogue.clamp_min = 0;
  expect_both(bound);

  for (Sum& sum : wanted) sum.value = 0.25 * sum.value + 2;
  epilogue.clamp_min = -std::numeric_limits<float>::infinity();
  const double params[] = {0.25, 2};
  epilogue.activation_params = params;
  epilogue.activation = multiply_and_add;
  expect_both(wanted);
}

TEST_P(SmallChannelConv, ClampPropagatesNaN) {
  const ConvShape s = Convolution{16, 1, 1, 3, 3, 1, 1}.shape();
  Operands at(s);
  at.x[5] = kNaN;
  BoundEpilogue epilogue;
  epilogue.clamp_min = 0;
  EXPECT_TRUE(std::isnan(forward(ChwnConvolution::forward(s), at, epilogue)[5]));
  EXPECT_TRUE(std::isnan(forward(DirectConvolution(s), at, epilogue)[5]));
}

INSTANTIATE_TEST_SUITE_P(Machines, SmallChannelConv,
                         testing::Values(Machine{1, 0}, Machine{2, 0}, Machine{5, 0},
                                         Machine{2, kFromAvx512}, Machine{2, kFromAvx2}));

TEST(ChwnConv, IsChosenForFewChannelsAndManyImages) {
  if (cpu::chwn_loops().lanes < 8) GTEST_SKIP() << "needs AVX2";
  const auto shape = [](int64_t batch, int64_t in, int64_t out) {
    return Convolution{batch, in, out, 14, 14, 5, 5}.shape();
  };
  EXPECT_GT(ChwnConvolution::estimated_speedup(shape(64, 1, 6)), 1.3);
  EXPECT_LT(ChwnConvolution::estimated_speedup(shape(64, 32, 32)), 1.1);
  EXPECT_LT(ChwnConvolution::estimated_speedup(shape(1, 1, 6)), 0.1);
  EXPECT_GT(ChwnConvolution::input_grad_speedup(shape(64, 6, 16)), 1.3);
  EXPECT_LT(ChwnConvolution::input_grad_speedup(shape(64, 32, 32)), 1.1);
  EXPECT_GT(ChwnWeightGrad::estimated_speedup(shape(64, 1, 6)), 1.3);
  EXPECT_LT(ChwnWeightGrad::estimated_speedup(shape(64, 16, 16)), 1.1);

  ConvShape s = shape(64, 1, 6);
  s.channels_last = true;
  EXPECT_EQ(ChwnConvolution::estimated_speedup(s), 0);
  s = shape(64, 2, 6);
  s.groups = 2;
  EXPECT_EQ(ChwnConvolution::estimated_speedup(s), 0);
  s = shape(64, 6, 16);
  s.stride_width = 2;
  EXPECT_EQ(ChwnConvolution::input_grad_speedup(s), 0);
}

TEST(DirectConv, IsChosenForFewChannelsAndWideImages) {
  if (cpu::chwn_loops().lanes < 8) GTEST_SKIP() << "needs AVX2";
  const auto shape = [](int64_t in, int64_t out, int64_t width) {
    return Convolution{1, in, out, 14, width, 1, 1}.shape();
  };
  EXPECT_GT(DirectConvolution::estimated_speedup(shape(1, 6, 28)), 1.3);
  EXPECT_LT(DirectConvolution::estimated_speedup(shape(32, 32, 64)), 1.1);
  EXPECT_LT(DirectConvolution::estimated_speedup(shape(1, 6, 1)), 0.1);
  ConvShape s = shape(1, 6, 28);
  s.stride_width = 2;
  EXPECT_EQ(DirectConvolution::estimated_speedup(s), 0);
}

}  // namespace
}  // namespace paddle
