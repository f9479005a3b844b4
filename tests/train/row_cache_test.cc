// The rows that a worker keeps for some steps.

#include "train/tables/row_cache.h"

#include <cstring>
#include <optional>

#include <gtest/gtest.h>

namespace paddle::train {
namespace {

void put(RowCache& cache, uint64_t key, double row, int64_t step) {
  cache.put(key, reinterpret_cast<const std::byte*>(&row), step);
}

std::optional<double> find(const RowCache& cache, uint64_t key, int64_t step) {
  const std::byte* const row = cache.find(key, step);
  if (!row) return std::nullopt;
  double out = 0;
  std::memcpy(&out, row, sizeof out);
  return out;
}

TEST(RowCache, RowsAreUsedForSomeSteps) {
  RowCache cache(sizeof(double), 1 << 20, 3);
  EXPECT_EQ(find(cache, 0, 1), std::nullopt);
  put(cache, 0, 0.5, 1);
  put(cache, UINT64_MAX, 1.5, 2);
  EXPECT_EQ(find(cache, 0, 3), 0.5);
  EXPECT_EQ(find(cache, 0, 4), std::nullopt);
  EXPECT_EQ(find(cache, UINT64_MAX, 4), 1.5);
  put(cache, 0, 2.5, 4);
  EXPECT_EQ(find(cache, 0, 6), 2.5);
  cache.clear();
  EXPECT_EQ(find(cache, 0, 6), std::nullopt);
}

TEST(RowCache, MemoryIsBounded) {
  constexpr uint64_t kBytes = 64 * 56 * 2;  // 64 rows of 56 bytes in each of two generations
  RowCache cache(sizeof(double), kBytes, 1 << 20);
  for (uint64_t key = 0; key < 1000; ++key) put(cache, key, static_cast<double>(key), 1);
  int64_t kept = 0;
  for (uint64_t key = 0; key < 1000; ++key)
    if (const auto row = find(cache, key, 2)) {
      EXPECT_EQ(*row, static_cast<double>(key));
      EXPECT_GE(key, 1000u - 128);
      ++kept;
    }
  EXPECT_GE(kept, 64);
  EXPECT_LE(kept, 128);
  RowCache none(sizeof(double), 100, 8);
  put(none, 1, 1, 1);
  EXPECT_EQ(find(none, 1, 1), std::nullopt) << "less memory than two rows need";
}

}  // namespace
}  // namespace paddle::train
