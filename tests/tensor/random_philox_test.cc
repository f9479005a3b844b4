#include "tensor/random.h"

#include <algorithm>
#include <cmath>
#include <map>

#include <gtest/gtest.h>

namespace paddle {
namespace {

// Known answers of the Random123 library (kat_vectors, philox4x32 with 10 rounds).
TEST(Philox, KnownAnswers) {
  EXPECT_EQ(philox({0, 0, 0, 0}, {0, 0}),
            (PhiloxCounter{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  EXPECT_EQ(philox({~0u, ~0u, ~0u, ~0u}, {~0u, ~0u}),
            (PhiloxCounter{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
  EXPECT_EQ(philox({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, {0xa4093822, 0x299f31d0}),
            (PhiloxCounter{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}));
}

TEST(Random, FillAgreesWithSingleElementsFromAnyStart) {
  const Random random(7, stream_of("linear.weight"), 3);
  for (const uint64_t first : {0u, 1u, 2u, 3u, 5u}) {
    std::vector<float> f(11), nf(11);
    std::vector<double> d(11), nd(11);
    random.fill_uniform(std::span<float>(f), first);
    random.fill_uniform(std::span<double>(d), first);
    random.fill_normal(std::span<float>(nf), first);
    random.fill_normal(std::span<double>(nd), first);
    for (uint64_t i = 0; i < 11; ++i) {
      EXPECT_EQ(f[i], random.uniform_float(first + i));
      EXPECT_EQ(d[i], random.uniform(first + i));
      EXPECT_EQ(nf[i], static_cast<float>(random.normal(first + i)));
      EXPECT_EQ(nd[i], random.normal(first + i));
    }
  }
}

TEST(Random, SeedStreamAndStepEachChangeTheNumbers) {
  const uint64_t base = Random(1, 2, 3).bits64(0);
  EXPECT_NE(base, Random(2, 2, 3).bits64(0));
  EXPECT_NE(base, Random(1, 3, 3).bits64(0));
  EXPECT_NE(base, Random(1, 2, 4).bits64(0));
  EXPECT_EQ(base, Random(1, 2, 3).bits64(0));
  EXPECT_NE(stream_of("a.weight"), stream_of("b.weight"));
}

TEST(Random, MomentsAreRight) {
  const Random random(42);
  const int n = 200000;
  double mean = 0, square = 0, fourth = 0, uniform = 0;
  std::array<int, 7> counts{};
  for (int i = 0; i < n; ++i) {
    const double x = random.normal(i);
    mean += x / n;
    square += x * x / n;
    fourth += x * x * x * x / n;
    const double u = random.uniform(i);
    ASSERT_GE(u, 0.0);
    ASSERT_LT(u, 1.0);
    uniform += u / n;
    ++counts[random.below(i, 7)];
  }
  EXPECT_NEAR(mean, 0, 0.01);
  EXPECT_NEAR(square, 1, 0.02);
  EXPECT_NEAR(fourth, 3, 0.1);
  EXPECT_NEAR(uniform, 0.5, 0.005);
  for (const int count : counts) EXPECT_NEAR(count, n / 7.0, 5 * std::sqrt(n / 7.0));
}

TEST(Permutation, HoldsEveryElementOnceForEverySize) {
  for (int64_t n = 0; n <= 300; ++n) {
    auto order = permutation(n, 5, 1, static_cast<uint64_t>(n));
    std::sort(order.begin(), order.end());
    for (int64_t i = 0; i < n; ++i) ASSERT_EQ(order[static_cast<size_t>(i)], i) << n;
  }
  const Permutation large(uint64_t{1} << 40, 1);
  EXPECT_LT(large(12345), uint64_t{1} << 40);
}

TEST(Permutation, OrdersOfFourAreEquallyFrequent) {
  std::map<std::vector<int64_t>, int> seen;
  const int draws = 24000;
  for (int seed = 0; seed < draws; ++seed) ++seen[permutation(4, static_cast<uint64_t>(seed))];
  ASSERT_EQ(seen.size(), 24u);
  double chi_square = 0;
  for (const auto& [order, count] : seen) chi_square += std::pow(count - 1000.0, 2) / 1000.0;
  EXPECT_LT(chi_square, 60);  // 23 degrees of freedom: exceeded once in 30,000 tests
}

TEST(Permutation, PlacesAreEquallyLikelyAndStepsDiffer) {
  const int n = 10, draws = 20000;
  std::vector<int> first(n), last(n);
  for (int step = 0; step < draws; ++step) {
    const Permutation order(n, 3, 4, static_cast<uint64_t>(step));
    ++first[order(0)];
    ++last[order(n - 1)];
  }
  for (int i = 0; i < n; ++i) {
    EXPECT_NEAR(first[static_cast<size_t>(i)], draws / n, 220);
    EXPECT_NEAR(last[static_cast<size_t>(i)], draws / n, 220);
  }
  EXPECT_NE(permutation(1000, 3, 4, 0), permutation(1000, 3, 4, 1));
  EXPECT_EQ(permutation(1000, 3, 4, 1), permutation(1000, 3, 4, 1));
}

}  // namespace
}  // namespace paddle
