// Sorting the entries of a row-sparse gradient: tables of any size, stable for equal rows.

#include "kernels/indexing/sorted_rows.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

namespace paddle::cpu {
namespace {

TEST(SortedRows, AreSortedByRowThenPosition) {
  for (const int64_t rows : {int64_t{1}, int64_t{7}, int64_t{2048}, int64_t{2049}, int64_t{1} << 30,
                             int64_t{1} << 45, INT64_MAX})
    for (const int64_t count : {0, 1, 2, 1000}) {
      std::vector<int64_t> indices;
      uint64_t state = 1;
      for (int64_t i = 0; i < count; ++i) {
        state = state * 6364136223846793005u + 1442695040888963407u;
        indices.push_back(static_cast<int64_t>((state >> 1) % static_cast<uint64_t>(rows)));
        if (i % 3 == 2) indices.back() = indices[static_cast<size_t>(i / 2)];  // some occur twice
      }
      std::vector<std::byte> scratch(sort_scratch_bytes(count));
      const std::span<const RowEntry> entries =
          sort_rows(indices.data(), count, rows, scratch.data());
      std::vector<int64_t> order(indices.size());
      for (size_t i = 0; i < order.size(); ++i) order[i] = static_cast<int64_t>(i);
      std::stable_sort(order.begin(), order.end(), [&](int64_t a, int64_t b) {
        return indices[static_cast<size_t>(a)] < indices[static_cast<size_t>(b)];
      });
      ASSERT_EQ(entries.size(), order.size());
      for (size_t i = 0; i < order.size(); ++i) {
        EXPECT_EQ(entries[i].at, order[i]) << rows << " rows, place " << i;
        EXPECT_EQ(entries[i].row, indices[static_cast<size_t>(order[i])]);
      }
    }
}

TEST(SortedRows, MinusOneIsNoRow) {
  std::vector<std::byte> scratch(sort_scratch_bytes(5));
  const int64_t indices[] = {-1, 4, -1, 2, 4};
  const std::span<const RowEntry> entries = sort_rows(indices, 5, 5, scratch.data());
  ASSERT_EQ(entries.size(), 3u);
  const int64_t rows[] = {2, 4, 4}, at[] = {3, 1, 4};
  for (size_t i = 0; i < 3; ++i) {
    EXPECT_EQ(entries[i].row, rows[i]);
    EXPECT_EQ(entries[i].at, at[i]);
  }
}

TEST(SortedRows, RejectRowsOutsideTheTable) {
  std::vector<std::byte> scratch(sort_scratch_bytes(2));
  for (const int64_t bad : {int64_t{-2}, int64_t{5}, INT64_MIN, INT64_MAX}) {
    const int64_t indices[] = {4, bad};
    EXPECT_THROW(sort_rows(indices, 2, 5, scratch.data()), Error);
  }
}

}  // namespace
}  // namespace paddle::cpu
