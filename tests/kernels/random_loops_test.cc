// Random numbers by vectors against those of tensor/random.h, bit for bit, for each instruction
// set: any first element, lengths that do not fill vectors, steps and elements beyond 32 bits.

#include "kernels/elementwise/random_loops.h"
#include "kernels/elementwise/permutation_tables.h"

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <vector>

#include "hwy/targets.h"

namespace paddle::cpu {
namespace {

class RandomLoops : public testing::TestWithParam<int64_t> {
 protected:
  void SetUp() override { hwy::DisableTargets(GetParam()); }
  void TearDown() override { hwy::DisableTargets(0); }
};

struct Part {
  uint64_t first;
  int64_t count;
};
constexpr std::array kParts = {Part{0, 1},   Part{1, 3},     Part{2, 700},
                               Part{3, 256}, Part{255, 129}, Part{(uint64_t{1} << 34) - 5, 300}};

TEST_P(RandomLoops, GiveTheNumbersOfSingleElements) {
  const Random random(7, stream_of("weight"), (uint64_t{3} << 32) + 1);
  for (const Part& part : kParts) {
    const auto n = static_cast<size_t>(part.count);
    std::vector<uint32_t> words(n + 1, 77);
    random_words(random, part.first, part.count, words.data());
    std::vector<double> normals(n + 1, 77);
    random_normals(random, part.first, part.count, 0.5, 2.0, normals.data());
    for (size_t i = 0; i < n; ++i) {
      ASSERT_EQ(words[i], random.bits32(part.first + i)) << part.first << " + " << i;
      ASSERT_EQ(normals[i], 0.5 + 2.0 * random.normal(part.first + i)) << part.first << " + " << i;
    }
    EXPECT_EQ(words[n], 77u);
    EXPECT_EQ(normals[n], 77);
  }
}

TEST_P(RandomLoops, ScaleAndCompareWords) {
  const Random random(1);
  for (const int64_t count : {1, 7, 16, 1000}) {
    const auto n = static_cast<size_t>(count);
    std::vector<uint32_t> words(n);
    random_words(random, 0, count, words.data());
    words[0] = 0xffffffff;
    std::vector<float> uniform(n), kept(n);
    uniform_floats(words.data(), count, -1, 3, 2, uniform.data());
    dropout_floats(words.data(), count, 0.3, kept.data());
    for (size_t i = 0; i < n; ++i) {
      const float unit = Random::to_float(words[i]), value = -1.0f + 3.0f * unit;
      ASSERT_EQ(uniform[i], value < 2 ? value : -1.0f);
      ASSERT_EQ(kept[i], static_cast<double>(unit) < 0.3 ? 0.0f : 1.0f);
    }
    for (const double all : {0.0, 1.0}) {
      dropout_floats(words.data(), count, all, kept.data());
      for (const float v : kept) ASSERT_EQ(v, all == 0 ? 1.0f : 0.0f);
    }
  }
}

TEST_P(RandomLoops, GiveThePermutation) {
  for (const uint64_t n : {1u, 2u, 3u, 10u, 257u, 100003u}) {
    const Permutation order(n, 3, 4, 5);
    for (const uint64_t first : {uint64_t{0}, n / 3}) {
      std::vector<int64_t> out(n - first + 1, -1);
      permutation_elements(order, first, static_cast<int64_t>(n - first), out.data());
      for (uint64_t i = first; i < n; ++i)
        ASSERT_EQ(out[i - first], static_cast<int64_t>(order(i))) << i << " of " << n;
      EXPECT_EQ(out.back(), -1);
    }
  }
  const Permutation large(uint64_t{1} << 62, 1);
  std::vector<int64_t> out(37);
  permutation_elements(large, (uint64_t{1} << 61) + 9, 37, out.data());
  for (uint64_t i = 0; i < 37; ++i)
    ASSERT_EQ(out[i], static_cast<int64_t>(large((uint64_t{1} << 61) + 9 + i)));
}

// Against the mathematics library, at the ends of the range and within.
TEST(NormalNumbers, AreThoseOfBoxAndMuller) {
  const Random random(11, 2, 3);
  for (uint64_t i = 0; i < 20000; ++i) {
    const double radius = std::sqrt(-2 * std::log(1 - random.uniform(2 * i)));
    const double angle = 2 * M_PI * random.uniform(2 * i + 1);
    ASSERT_NEAR(random.normal(2 * i), radius * std::cos(angle), 2e-15 * radius);
    ASSERT_NEAR(random.normal(2 * i + 1), radius * std::sin(angle), 2e-15 * radius);
  }
}

INSTANTIATE_TEST_SUITE_P(Targets, RandomLoops,
                         testing::Values(int64_t{0}, int64_t{HWY_AVX3 | (HWY_AVX3 - 1)},
                                         int64_t{HWY_AVX2 | (HWY_AVX2 - 1)}));

TEST(PermutationTables, GiveTheElementsOneByOne) {
  EXPECT_EQ(PermutationTables::bytes(100), 0u);
  EXPECT_EQ(PermutationTables::bytes(uint64_t{1} << 40), 0u);
  for (const uint64_t n : {4096u, 4097u, 5000u, 65536u, 1000003u}) {
    const Permutation order(n, 7, 3, 5);
    std::vector<std::byte> memory(PermutationTables::bytes(n));
    ASSERT_FALSE(memory.empty());
    const PermutationTables tables(order, memory.data());
    for (const uint64_t first : {uint64_t{0}, uint64_t{1}, n / 2, n - 13}) {
      const auto count = static_cast<int64_t>(std::min<uint64_t>(700, n - first));
      std::vector<int64_t> out(static_cast<size_t>(count) + 1, -7);
      tables.elements(first, count, out.data());
      for (int64_t i = 0; i < count; ++i)
        ASSERT_EQ(static_cast<uint64_t>(out[static_cast<size_t>(i)]),
                  order(first + static_cast<uint64_t>(i)))
            << n << " " << first << " " << i;
      EXPECT_EQ(out.back(), -7) << "written beyond";
    }
  }
}

}  // namespace
}  // namespace paddle::cpu
