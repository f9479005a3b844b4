// Rows by key in memory, against a map of the standard library.

#include "tables/record_table.h"

#include <algorithm>
#include <cstring>
#include <random>
#include <unordered_map>

#include <gtest/gtest.h>

namespace paddle::tables {
namespace {

using Keys = std::vector<uint64_t>;

/// A row whose elements are functions of the key.
void fill(const RecordTable& table, uint64_t key, std::byte* row, int64_t states) {
  for (int64_t i = 0; i < table.width() * (1 + states); ++i) {
    const auto value = static_cast<float>(hash_of(key + static_cast<uint64_t>(i)) >> 40);
    std::memcpy(row + i * 4, &value, 4);
  }
}

TEST(RecordTable, HasWhatAMapHas) {
  std::mt19937_64 random(5);
  for (const int64_t width : {1, 3, 8, 200}) {
    RecordTable table(DType::kF32, width, 1);
    std::unordered_map<uint64_t, std::vector<std::byte>> map;
    Keys some = {0, 1, uint64_t{1} << 63, UINT64_MAX, UINT64_MAX - 1};
    for (int i = 0; i < (width > 100 ? 3000 : 150000); ++i) some.push_back(random());
    for (uint64_t i = 0; i < 5000; ++i) some.push_back(i << 40);  // alike
    EXPECT_EQ(table.find(0), nullptr);
    const size_t bytes = static_cast<size_t>(width) * 8;
    for (const uint64_t key : some) {
      const bool is_new = !map.contains(key);
      ASSERT_EQ(table.find(key) == nullptr, is_new) << key;
      if (!is_new) continue;
      std::byte* const row = table.insert(key);
      fill(table, key, row, 1);
      map[key].assign(row, row + bytes);
    }
    ASSERT_EQ(table.count(), static_cast<int64_t>(map.size()));
    Keys asked;
    for (const auto& [key, row] : map) {
      asked.push_back(key);
      asked.push_back(random());
    }
    std::vector<std::byte*> found(asked.size());
    table.find(asked, found);
    for (size_t i = 0; i < asked.size(); ++i) {
      const auto known = map.find(asked[i]);
      ASSERT_EQ(found[i] != nullptr, known != map.end());
      if (found[i]) {
        ASSERT_EQ(std::memcmp(found[i], known->second.data(), bytes), 0);
      }
    }
    int64_t seen = 0;
    for (int shard = 0; shard < kShards; ++shard) {
      uint64_t last = 0;
      int64_t here = 0;
      table.for_each_sorted(shard, true, [&](uint64_t key, const std::byte* row) {
        ASSERT_EQ(shard_of(key), shard);
        ASSERT_TRUE(here == 0 || static_cast<int64_t>(last) < static_cast<int64_t>(key));
        ASSERT_EQ(std::memcmp(row, map.at(key).data(), bytes), 0);
        last = key;
        ++here;
      });
      EXPECT_EQ(here, table.count(shard));
      seen += here;
    }
    EXPECT_EQ(seen, table.count());
    table.clear();
    EXPECT_EQ(table.count(), 0);
    EXPECT_EQ(table.find(some[0]), nullptr);
  }
}

TEST(RecordTable, RowsStayWhereTheyAre) {
  RecordTable table(DType::kF64, 2, 0);
  std::vector<std::byte*> rows;
  for (uint64_t key = 0; key < 60000; ++key) rows.push_back(table.insert(key));
  for (uint64_t key = 0; key < 60000; ++key) ASSERT_EQ(table.find(key), rows[key]);
  for (const std::byte* row : rows) ASSERT_EQ(reinterpret_cast<uintptr_t>(row) % 8, 0u);
}

TEST(RecordTable, TakesLittleMoreThanItsRows) {
  RecordTable table(DType::kF32, 8, 1);
  EXPECT_LE(table.bytes(), uint64_t{64} * kShards);
  constexpr uint64_t kRows = 3000000, kPayload = 72;
  for (uint64_t key = 0; key < kRows; ++key) {
    fill(table, key, table.insert(key), 1);
    // Small tables have open pages, too.
    if (key == 20000) {
      EXPECT_LE(table.bytes(), uint64_t{64} * kShards + key * kPayload * 3 / 2);
    }
  }
  EXPECT_LE(static_cast<double>(table.bytes()), 1.2 * kRows * kPayload);
}

TEST(Shards, AreDividedCompletely) {
  for (const int parts : {1, 2, 3, 7, 1024}) {
    int next = 0;
    for (int part = 0; part < parts; ++part) {
      const auto [first, last] = shards_of_part(part, parts);
      EXPECT_EQ(first, next);
      for (int shard = first; shard < last; ++shard) EXPECT_EQ(part_of_shard(shard, parts), part);
      next = last;
    }
    EXPECT_EQ(next, kShards);
  }
}

TEST(RecordTable, ErasesWhatAMapErases) {
  std::mt19937_64 random(8);
  RecordTable table(DType::kF32, 3, 1, 4);
  std::unordered_map<uint64_t, std::vector<std::byte>> map;
  const size_t bytes = 3 * 8 + 4;
  const auto check = [&] {
    ASSERT_EQ(table.count(), static_cast<int64_t>(map.size()));
    for (const auto& [key, row] : map) {
      const std::byte* const found = table.find(key);
      ASSERT_NE(found, nullptr);
      ASSERT_EQ(std::memcmp(found, row.data(), bytes), 0);
    }
  };
  for (int round = 0; round < 4; ++round) {
    for (int i = 0; i < 40000; ++i) {
      const uint64_t key = random() % 60000;  // some were erased, and come again
      if (map.contains(key)) continue;
      std::byte* const row = table.insert(key);
      fill(table, key, row, 1);
      std::memcpy(row + table.further_at(), &i, 4);
      map[key].assign(row, row + bytes);
    }
    check();
    for (int i = 0; i < 10000; ++i) {
      const uint64_t key = random() % 60000;
      ASSERT_EQ(table.erase(key), map.erase(key) == 1);
      ASSERT_EQ(table.find(key), nullptr);
    }
    check();
    const auto is_removed = [&](uint64_t key) { return key % 5 == static_cast<uint64_t>(round); };
    int64_t removed = 0;
    for (int shard = 0; shard < kShards; ++shard)
      removed +=
          table.erase_if(shard, [&](uint64_t key, const std::byte*) { return is_removed(key); });
    ASSERT_EQ(removed, static_cast<int64_t>(std::erase_if(
                           map, [&](const auto& each) { return is_removed(each.first); })));
    check();
  }
  // Memory of removed rows is given back, but for the index.
  const uint64_t full = table.bytes();
  for (int shard = 0; shard < kShards; ++shard)
    table.erase_if(shard, [](uint64_t, const std::byte*) { return true; });
  EXPECT_EQ(table.count(), 0);
  EXPECT_LT(table.bytes(), full / 2);
  EXPECT_FALSE(table.erase(1));
}

}  // namespace
}  // namespace paddle::tables
