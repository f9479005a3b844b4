// The im2col weight gradient against plain sums in f64: channels and pixels that do not fill tiles,
// strides, padding and pointwise kernels, for one thread and several, for each instruction set.

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "hwy/targets.h"

#include "base/parallel.h"
#include "kernels/conv/im2col_weight_grad.h"
#include "support/convolutions.h"
#include "support/numbers.h"
#include "tensor/tensor.h"

namespace paddle {
namespace {

using namespace testing_support;
using cpu::ConvShape;
using cpu::Im2colWeightGrad;

const Convolution kCases[] = {
    {1, 1, 1, 1, 1, 1, 1},
    {2, 16, 24, 9, 7, 3, 3, 1, 1, 1, 1, 1, 1},
    {1, 17, 205, 5, 6, 3, 3, 2, 2, 1, 1, 1, 1},
    {3, 130, 33, 11, 10, 1, 1},
    {2, 40, 20, 12, 13, 1, 1, 2, 2},
    {1, 20, 400, 8, 9, 2, 5, 1, 3, 0, 1, 4, 2},
    {2, 3, 5, 4, 3, 4, 2, 1, 1, 3, 3, 5, 1},
    {5, 64, 19, 10, 10, 3, 1, 1, 1, 1, 1},
};

struct Sum {
  double value = 0, size = 0;
};

/// [out, in, row, column], in f64.
std::vector<Sum> sums(const ConvShape& s, const std::vector<float>& x,
                      const std::vector<float>& dy) {
  std::vector<Sum> dw(static_cast<size_t>(s.out_channels * s.window_size()));
  const int64_t kernel_positions = s.kernel_height * s.kernel_width;
  for (int64_t p = 0; p < s.batch * s.positions(); ++p)
    for (int64_t position = 0; position < kernel_positions; ++position) {
      const int64_t at = p % s.positions();
      const int64_t row = at / s.out_width * s.stride_height - s.top + position / s.kernel_width;
      const int64_t column = at % s.out_width * s.stride_width - s.left + position % s.kernel_width;
      if (row < 0 || row >= s.height || column < 0 || column >= s.width) continue;
      const int64_t pixel = (p / s.positions() * s.height + row) * s.width + column;
      for (int64_t o = 0; o < s.out_channels; ++o)
        for (int64_t c = 0; c < s.in_channels; ++c) {
          const double term = static_cast<double>(dy[static_cast<size_t>(p * s.out_channels + o)]) *
                              x[static_cast<size_t>(pixel * s.in_channels + c)];
          Sum& sum = dw[static_cast<size_t>((o * s.in_channels + c) * kernel_positions + position)];
          sum.value += term;
          sum.size += std::abs(term);
        }
    }
  return dw;
}

struct Machine {
  int threads;
  int64_t without;  ///< disabled instruction sets
};

class Im2colWeightGrads : public testing::TestWithParam<Machine> {
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

TEST_P(Im2colWeightGrads, MatchPlainSums) {
  constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();
  for (const Convolution& c : kCases) {
    ConvShape s = c.shape();
    s.channels_last = true;
    SCOPED_TRACE(str(c.in, " to ", c.out, " by ", c.kernel_height, " x ", c.kernel_width));
    const auto x = numbers(s.batch * s.height * s.width * s.in_channels, 1);
    const auto dy = numbers(s.batch * s.positions() * s.out_channels, 2);
    const std::vector<Sum> wanted = sums(s, x, dy);

    const Im2colWeightGrad gradient(s);
    constexpr size_t kGuard = 64;
    std::vector<float> dw(wanted.size() + kGuard, kNaN);
    const auto scratch = Storage::allocate(gradient.scratch_bytes() + kGuard);
    std::fill_n(reinterpret_cast<float*>(scratch->data()), gradient.scratch_bytes() / sizeof(float),
                kNaN);
    std::fill_n(scratch->data() + gradient.scratch_bytes(), kGuard, std::byte{0x5a});
    gradient.run(x.data(), dy.data(), dw.data(), scratch->data());
    for (size_t i = 0; i < wanted.size(); ++i)
      ASSERT_NEAR(dw[i], wanted[i].value, 1e-6 * wanted[i].size) << "at " << i;
    for (size_t i = 0; i < kGuard; ++i) {
      ASSERT_TRUE(std::isnan(dw[wanted.size() + i]));
      ASSERT_EQ(scratch->data()[gradient.scratch_bytes() + i], std::byte{0x5a});
    }
  }
}

constexpr int64_t kFromAvx512 = HWY_AVX3 | (HWY_AVX3 - 1), kFromAvx2 = HWY_AVX2 | (HWY_AVX2 - 1);

INSTANTIATE_TEST_SUITE_P(Machines, Im2colWeightGrads,
                         testing::Values(Machine{1, 0}, Machine{3, 0}, Machine{2, kFromAvx512},
                                         Machine{2, kFromAvx2}));

}  // namespace
}  // namespace paddle
