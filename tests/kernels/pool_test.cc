// The gradient of max pooling against plain sums: 2 x 2 windows with stride 2 and others, odd
// sizes, and indices outside their windows or the plane, for each instruction set.

#include <gtest/gtest.h>

#include <limits>

#include "hwy/targets.h"

#include "kernels/pool/pool_simd.h"
#include "ops/core/call.h"
#include "ops/core/kernel.h"
#include "support/numbers.h"

namespace paddle {
namespace cpu {
std::unique_ptr<Kernel> prepare_max_pool2d_grad(const KernelRequest& request);
}  // namespace cpu

namespace {

using namespace testing_support;

struct Plane {
  int64_t planes, height, width, out_height, out_width;
};

/// One gradient and one index per window.
struct Given {
  std::vector<float> grad;
  std::vector<int32_t> places;
};

/// 2 x 2 windows with stride 2; the indices of `others` of them are anywhere from -1 to one past
/// the plane.
Given given(const Plane& p, int64_t others) {
  Given out;
  Generator generator(7);
  for (int64_t i = 0; i < p.planes * p.out_height * p.out_width; ++i) {
    const int64_t r = i / p.out_width % p.out_height, c = i % p.out_width;
    const int64_t row = 2 * r + generator.next() % 2, column = 2 * c + generator.next() % 2;
    int64_t place = row * p.width + column;
    if (others > 0 && i % others == others - 1)
      place = generator.next() % (p.height * p.width + 2) - 1;
    out.places.push_back(static_cast<int32_t>(place));
    out.grad.push_back(generator.number());
  }
  return out;
}

std::vector<float> wanted(const Plane& p, const Given& given) {
  const int64_t pixels = p.height * p.width, windows = p.out_height * p.out_width;
  std::vector<float> out(static_cast<size_t>(p.planes * pixels), 0.0f);
  for (size_t i = 0; i < given.grad.size(); ++i) {
    const int64_t place = given.places[i], plane = static_cast<int64_t>(i) / windows;
    if (place >= 0 && place < pixels)
      out[static_cast<size_t>(plane * pixels + place)] += given.grad[i];
  }
  return out;
}

/// The kernel's result; checks that nothing else is written.
std::vector<float> computed(const Plane& p, const Given& given) {
  const Op& op = get_op("max_pool2d_grad");
  Attrs attrs = default_attrs(op);
  attrs[static_cast<size_t>(op.attr_index("input_shape"))] =
      std::vector<int64_t>{1, p.planes, p.height, p.width};
  const Dims windows = {1, p.planes, p.out_height, p.out_width};
  const std::vector<Layout> operands = {Layout::contiguous(DType::kF32, windows),
                                        Layout::contiguous(DType::kI32, windows)};
  const Layout result = Layout::contiguous(DType::kF32, {1, p.planes, p.height, p.width});
  const auto kernel = cpu::prepare_max_pool2d_grad(
      {.op = op, .attrs = attrs, .operands = operands, .results = std::span(&result, 1)});
  const auto count = static_cast<size_t>(p.planes * p.height * p.width);
  constexpr size_t kGuard = 32;
  std::vector<float> out(count + kGuard, -7);
  Given copy = given;  // exact sizes, so that sanitizers see reads past the end
  void* const from[] = {copy.grad.data(), copy.places.data()};
  void* const to[] = {out.data()};
  kernel->run({}, from, to);
  for (size_t i = 0; i < kGuard; ++i) EXPECT_EQ(out[count + i], -7);
  out.resize(count);
  return out;
}

const Plane kPlanes[] = {{1, 2, 2, 1, 1},     {3, 2, 3, 1, 1},    {2, 3, 4, 1, 2},
                         {5, 7, 7, 3, 3},     {40, 10, 10, 5, 5}, {3, 9, 15, 4, 7},
                         {2, 16, 16, 8, 8},   {2, 5, 19, 2, 9},   {384, 28, 28, 14, 14},
                         {2, 33, 32, 16, 16}, {1, 3, 71, 1, 35},  {1, 64, 66, 32, 33}};

class MaxPoolGrad : public testing::TestWithParam<int64_t> {
 protected:
  void SetUp() override { hwy::DisableTargets(GetParam()); }
  void TearDown() override { hwy::DisableTargets(0); }
};

TEST_P(MaxPoolGrad, ScattersToIndices) {
  for (const Plane& p : kPlanes)
    for (const int64_t others : {0, 1, 7, 50}) {
      const Given from = given(p, others);
      EXPECT_EQ(computed(p, from), wanted(p, from))
          << p.height << " x " << p.width << ", others " << others;
    }
}

TEST_P(MaxPoolGrad, SumsWhereWindowsOverlap) {
  for (const Plane& p : {Plane{3, 5, 5, 4, 4}, Plane{2, 9, 11, 7, 9}, Plane{2, 6, 6, 6, 6}}) {
    const Given from = given(p, 1);
    EXPECT_EQ(computed(p, from), wanted(p, from)) << p.height << " x " << p.width;
  }
}

TEST_P(MaxPoolGrad, KeepsNaNLocal) {
  const Plane p{4, 10, 10, 5, 5};
  Given from = given(p, 0);
  from.grad[31] = std::numeric_limits<float>::quiet_NaN();
  const std::vector<float> got = computed(p, from), expected = wanted(p, from);
  for (size_t i = 0; i < got.size(); ++i)
    if (expected[i] == expected[i])
      EXPECT_EQ(got[i], expected[i]) << "at " << i;
    else
      EXPECT_NE(got[i], got[i]) << "at " << i;
}

TEST_P(MaxPoolGrad, RejectsIndicesOutsideTheWindow) {
  for (const Plane& p : kPlanes) {
    std::vector<float> out(static_cast<size_t>(p.height * p.width));
    const auto complete = [&](const Given& from) {
      return cpu::max_pool_2x2_grad(from.grad.data(), from.places.data(), p.out_height, p.out_width,
                                    static_cast<int32_t>(p.width), out.data());
    };
    const Plane one{1, p.height, p.width, p.out_height, p.out_width};
    EXPECT_TRUE(complete(given(one, 0)));
    for (size_t i = 0; i < given(one, 0).places.size(); ++i) {
      Given from = given(one, 0);
      from.places[i] += 2 * (p.width + 1);
      EXPECT_FALSE(complete(from)) << p.height << " x " << p.width << " at " << i;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Instructions, MaxPoolGrad,
                         testing::Values(0, HWY_AVX3 | (HWY_AVX3 - 1), HWY_AVX2 | (HWY_AVX2 - 1)));

}  // namespace
}  // namespace paddle
