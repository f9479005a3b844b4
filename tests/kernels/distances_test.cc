// Loops of distances and weighted differences against sums in long double, for each instruction
// set: sizes that fill tiles, panels and parts, and those that do not.

#include "kernels/reduce/distances_simd.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "hwy/targets.h"

#include "support/numbers.h"

namespace paddle::cpu {
namespace {

using testing_support::Generator;

class Distances : public testing::TestWithParam<int64_t> {
 protected:
  void SetUp() override { hwy::DisableTargets(GetParam()); }
  void TearDown() override { hwy::DisableTargets(0); }
};

template <class T>
std::vector<T> numbers(Generator& generator, int64_t n) {
  std::vector<T> out(static_cast<size_t>(n));
  for (T& v : out) v = static_cast<T>(static_cast<int>(generator.next() % 2001) - 1000) / T(512);
  return out;
}

template <class T>
void expect_distances(double tolerance) {
  Generator generator(3);
  const DistanceLoops<T> loops = distance_loops<T>();
  for (const int64_t rows : {1, 4, 7})
    for (const int64_t columns : {1, 5, 32, 33})
      for (const int64_t size : {0, 1, 3, 16, 64, 65, 200}) {
        auto x = numbers<T>(generator, rows * size), y = numbers<T>(generator, columns * size);
        std::copy_n(x.begin(), size, y.begin());  // equal rows
        std::vector<T> out(static_cast<size_t>(rows * columns), T(-1));
        for (int64_t j = 0; j < columns; j += loops.panel) {
          std::vector<T> panel(static_cast<size_t>(loops.panel * size));
          const int64_t n = std::min(loops.panel, columns - j);
          loops.pack(y.data() + j * size, n, size, panel.data());
          loops.distances(x.data(), rows, panel.data(), n, size, out.data() + j, columns);
        }
        EXPECT_EQ(out[0], T(0));
        for (int64_t i = 0; i < rows; ++i)
          for (int64_t j = 0; j < columns; ++j) {
            long double sum = 0;
            for (int64_t k = 0; k < size; ++k) {
              const long double d = static_cast<long double>(x[static_cast<size_t>(i * size + k)]) -
                                    y[static_cast<size_t>(j * size + k)];
              sum += d * d;
            }
            const auto want = static_cast<double>(std::sqrt(sum));
            ASSERT_NEAR(static_cast<double>(out[static_cast<size_t>(i * columns + j)]), want,
                        tolerance * want)
                << i << ", " << j << " of " << rows << " x " << columns << " x " << size;
          }
      }
}

template <class T>
void expect_weighted(double tolerance) {
  Generator generator(5);
  const DistanceLoops<T> loops = distance_loops<T>();
  for (const int64_t rows : {1, 4, 6})
    for (const int64_t count : {0, 1, 64, 70})
      for (const int64_t size : {1, 3, 8, 16, 37, 64}) {
        const auto x = numbers<T>(generator, rows * size), y = numbers<T>(generator, count * size),
                   weight = numbers<T>(generator, rows * count);
        std::vector<T> out(static_cast<size_t>(rows * size), T(-1));
        loops.weighted(x.data(), rows, y.data(), weight.data(), count, size, out.data());
        for (int64_t i = 0; i < rows; ++i)
          for (int64_t k = 0; k < size; ++k) {
            long double sum = 0, sizes = 0;
            for (int64_t j = 0; j < count; ++j) {
              const long double term =
                  static_cast<long double>(weight[static_cast<size_t>(i * count + j)]) *
                  (static_cast<long double>(x[static_cast<size_t>(i * size + k)]) -
                   y[static_cast<size_t>(j * size + k)]);
              sum += term;
              sizes += std::abs(term);
            }
            ASSERT_NEAR(static_cast<double>(out[static_cast<size_t>(i * size + k)]),
                        static_cast<double>(sum), tolerance * static_cast<double>(sizes));
          }
      }
}

TEST_P(Distances, MatchTheDifferences) {
  expect_distances<float>(1e-6);
  expect_distances<double>(1e-14);
}

TEST_P(Distances, WeightedDifferences) {
  expect_weighted<float>(1e-6);
  expect_weighted<double>(1e-14);
}

INSTANTIATE_TEST_SUITE_P(Targets, Distances,
                         testing::Values(int64_t{0}, int64_t{HWY_AVX3 | (HWY_AVX3 - 1)},
                                         int64_t{HWY_AVX2 | (HWY_AVX2 - 1)}));

}  // namespace
}  // namespace paddle::cpu
