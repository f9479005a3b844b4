// Operations with loops of their own for common shapes: each result against other operations or
// plain code on the same numbers.

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <complex>
#include <limits>
#include <map>

#include "ops/core/operators.h"
#include "ops/generated/complex.h"
#include "ops/generated/fft.h"
#include "ops/generated/linalg.h"
#include "ops/generated/math.h"
#include "ops/generated/nn.h"
#include "ops/generated/reduce.h"
#include "ops/generated/shape.h"
#include "ops/generated/sorting.h"
#include "ops/generated/spectrum.h"
#include "runtime/execute.h"
#include "support/numbers.h"

namespace paddle {
namespace {

using testing_support::drawn;

constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();
const std::vector<int64_t> kLast = {-1};

class FastLoops : public testing::Test {
  runtime::EagerExecutor eager_;
  InterpreterScope scope_{eager_};
};

Array values(const Tensor& t) { return t.array().contiguous(); }

/// |got - wanted| <= tolerance (1 + |wanted|), element by element.
void expect_near(const Tensor& got, const Tensor& wanted, double tolerance,
                 const std::string& what) {
  const Array a = values(got), b = values(wanted);
  ASSERT_EQ(a.shape, b.shape) << what;
  for (int64_t i = 0; i < a.size(); ++i)
    ASSERT_NEAR(a.number(i), b.number(i), tolerance * (1 + std::abs(b.number(i))))
        << what << " at " << i;
}

// Rows far from zero and close to each other: their distance keeps its digits.
TEST_F(FastLoops, DistancesOfRows) {
  for (const DType dtype : {DType::kF32, DType::kF64, DType::kF16}) {
    Array a = drawn({2, 9, 70}, 1, 1), b = drawn({1, 37, 70}, 2, 1);
    std::copy_n(a.data<float>(), 70, b.data<float>());
    const Tensor x(a.cast(dtype)), y(b.cast(dtype));
    const Tensor difference = ops::unsqueeze(ops::cast(x, DType::kF64), {2}) -
                              ops::unsqueeze(ops::cast(y, DType::kF64), {1});
    const Tensor wanted = ops::sqrt(ops::sum(ops::square(difference), kLast));
    expect_near(ops::cast(ops::cdist(x, y), DType::kF64), wanted,
                dtype == DType::kF16 ? 2e-3 : 1e-6, text(dtype));
    EXPECT_EQ(values(ops::cdist(x, y)).number(0), 0);
  }
  Array far = drawn({3, 16}, 3, 1, 4096);
  Array near = far.cast(DType::kF32);
  for (int64_t i = 0; i < near.size(); ++i) near.data<float>()[i] += 0.0009765625f;
  const Array got = values(ops::cdist(Tensor(far), Tensor(near)));
  double squares = 0;
  for (int64_t k = 0; k < 16; ++k)
    squares += std::pow(static_cast<double>(near.data<float>()[k] - far.data<float>()[k]), 2);
  EXPECT_NEAR(got.number(0), std::sqrt(squares), 1e-6 * std::sqrt(squares));
}

TEST_F(FastLoops, NormsOfRows) {
  for (const Dims& shape : {Dims{5, 1000}, Dims{300, 7}, Dims{2, 3, 65}}) {
    const Tensor x(drawn(shape, 4, 3));
    const Tensor wanted =
        ops::sqrt(ops::sum(ops::square(ops::cast(x, DType::kF64)), kLast, std::nullopt, true));
    expect_near(ops::cast(ops::norm(x, AttrValue(2.0), kLast, true), DType::kF64), wanted, 1e-6,
                str(shape));
  }
  const Tensor zero(Array::zeros(DType::kF32, {2, 3}));
  EXPECT_EQ(values(ops::norm(zero, AttrValue(2.0), kLast)).number(1), 0);
}

TEST_F(FastLoops, ExtremaOfRowsOfAnyLength) {
  for (int64_t n = 1; n < 80; ++n) {
    Array x = drawn({3, n}, static_cast<uint32_t>(n), 4);
    x.data<float>()[n + n / 2] = kNaN;
    const Array most = values(ops::max(Tensor(x), kLast)),
                least = values(ops::min(Tensor(x), kLast));
    for (const int64_t row : {0, 2}) {
      const float* const v = x.data<float>() + row * n;
      EXPECT_EQ(most.number(row), *std::max_element(v, v + n)) << n;
      EXPECT_EQ(least.number(row), *std::min_element(v, v + n)) << n;
    }
    EXPECT_TRUE(std::isnan(most.number(1)) && std::isnan(least.number(1))) << n;
  }
}

TEST_F(FastLoops, GroupsOfChannels) {
  const Tensor x(drawn({3, 6, 5, 7}, 5, 2, 1)), weight(drawn({6}, 6, 1)), bias(drawn({6}, 7, 1));
  const auto per_channel = [](const Tensor& t) { return ops::reshape(t, {1, 6, 1, 1}); };
  for (const int64_t groups : {1, 2, 6}) {
    const Dim each(6 * 35 / groups);
    const Tensor rows = ops::reshape(x, {3, Dim(groups), each});
    const Tensor normal =
        ops::reshape(ops::layer_norm(rows, AttrValue(std::vector<Dim>{each})), x.shape());
    const std::string what = str(groups, " groups");
    expect_near(ops::group_norm(x, groups, 1e-5, weight, bias),
                normal * per_channel(weight) + per_channel(bias), 0, what);
    expect_near(ops::group_norm(x, groups), normal, 0, what);
    const std::vector<int64_t> to_last = {0, 2, 3, 1};
    expect_near(ops::group_norm(ops::transpose(x, to_last), groups, 1e-5, weight, bias, "NHWC"),
                ops::transpose(ops::group_norm(x, groups, 1e-5, weight, bias), to_last), 0, what);
  }
}

TEST_F(FastLoops, MeansOfPlanes) {
  for (const Dims& shape : {Dims{2, 5, 7, 7}, Dims{1, 3, 40, 33}, Dims{4, 2, 1, 1}}) {
    const Tensor x(drawn(shape, 8, 2));
    expect_near(ops::adaptive_avg_pool2d(x, AttrValue(1)),
                ops::mean(x, std::vector<int64_t>{2, 3}, true), 1e-6, str(shape));
  }
}

TEST_F(FastLoops, CountsOfIntegers) {
  Array x = Array::empty(DType::kI64, {1500});
  std::map<int64_t, int64_t> counts;
  testing_support::Generator generator(9);
  for (int64_t i = 0; i < x.size(); ++i) ++counts[x.data<int64_t>()[i] = generator.next() % 97];
  for (const DType dtype : {DType::kI64, DType::kI32, DType::kU8}) {
    const Array got = values(ops::bincount(Tensor(x.cast(dtype))));
    ASSERT_EQ(got.size(), 97) << text(dtype);
    for (int64_t k = 0; k < 97; ++k) EXPECT_EQ(got.number(k), counts[k]) << text(dtype) << k;
  }
}

// A range of integers is counted, and sorted if it is wide; the results are alike.
TEST_F(FastLoops, DistinctIntegers) {
  testing_support::Generator generator(10);
  for (const int64_t spread : {int64_t{1}, int64_t{1} << 40}) {
    Array x = Array::empty(DType::kI64, {1000});
    std::map<int64_t, std::vector<int64_t>> places;
    for (int64_t i = 0; i < x.size(); ++i) {
      x.data<int64_t>()[i] = (static_cast<int64_t>(generator.next() % 300) - 150) * spread;
      places[x.data<int64_t>()[i]].push_back(i);
    }
    const Tensors found = ops::unique(Tensor(x), true, true, true);
    ASSERT_EQ(found.size(), 4u);
    const Array numbers = values(found[0]), first = values(found[1]), inverse = values(found[2]),
                counts = values(found[3]);
    ASSERT_EQ(numbers.size(), std::ssize(places));
    int64_t k = 0;
    for (const auto& [number, at] : places) {
      EXPECT_EQ(numbers.integer(k), number);
      EXPECT_EQ(first.integer(k), at[0]);
      EXPECT_EQ(counts.integer(k), std::ssize(at));
      for (const int64_t i : at) ASSERT_EQ(inverse.integer(i), k);
      ++k;
    }
  }
}

TEST_F(FastLoops, ValuesWithoutVectors) {
  for (const int64_t n : {6, 50}) {
    const Tensor x(drawn({2, n, n}, 11, 1)), wide(drawn({2, n, n + 9}, 12, 1));
    const Tensor symmetric = x + ops::transpose(x, std::vector<int64_t>{0, 2, 1});
    expect_near(ops::svdvals(wide), ops::svd(wide)[1], 2e-6, "svdvals");
    for (const char* side : {"L", "U"})
      expect_near(ops::eigvalsh(symmetric, side), ops::eigh(symmetric, side)[0], 1e-5, side);
    // The values of a pair may change places: their sums do not.
    for (int64_t power : {1, 2}) {
      const auto sums = [&](const Tensor& v) {
        return ops::real(ops::sum(power == 1 ? v : v * v, kLast));
      };
      expect_near(sums(ops::eigvals(x)), sums(ops::eig(x)[0]), 1e-4, "eigvals");
    }
  }
}

// Rows are transformed one by one along the last axis, and side by side along others.
TEST_F(FastLoops, FourierTransformsOfRows) {
  for (const int64_t n : {8, 64, 72, 96, 120, 248, 1000, 1024})
    for (const DType dtype : {DType::kF32, DType::kF64}) {
      const double tolerance = dtype == DType::kF32 ? 2e-5 : 1e-12;
      const Tensor re(drawn({3, n}, 13, 1).cast(dtype)), im(drawn({3, n}, 14, 1).cast(dtype));
      const Tensor x = ops::complex(re, im);
      const auto turned = [](const Tensor& t) {
        return ops::transpose(t, std::vector<int64_t>{1, 0});
      };
      const std::string what = str(n, " of ", text(dtype));
      const auto expect_alike = [&](const Tensor& got, const Tensor& wanted) {
        expect_near(ops::as_real(got), ops::as_real(wanted), tolerance, what);
      };
      expect_alike(ops::fft(x), turned(ops::fft(turned(x), std::nullopt, 0)));
      expect_alike(ops::rfft(re), turned(ops::rfft(turned(re), std::nullopt, 0)));
    }
}

TEST_F(FastLoops, RowsBackwards) {
  for (int64_t n = 1; n < 20; ++n) {
    const Array x = drawn({2, n}, 15, 1), got = values(ops::flip(Tensor(x), {1}));
    for (int64_t i = 0; i < 2 * n; ++i)
      ASSERT_EQ(got.number(i), x.number(i / n * n + n - 1 - i % n)) << n;
  }
}

}  // namespace
}  // namespace paddle
