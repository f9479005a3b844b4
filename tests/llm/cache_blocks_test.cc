// Blocks of a paged cache: shared by reference count, copied when they are written, the lowest
// first.

#include "llm/cache_blocks.h"

#include <gtest/gtest.h>

#include <random>
#include <set>
#include <utility>
#include <vector>

#include "base/error.h"

namespace paddle::llm {
namespace {

using Copies = std::vector<std::pair<int64_t, int64_t>>;

Copies grow(CacheBlocks& blocks, int64_t sequence, int64_t length, int64_t target) {
  Copies out;
  blocks.grow(sequence, length, target,
              [&](int64_t from, int64_t to) { out.emplace_back(from, to); });
  return out;
}

TEST(CacheBlocks, ASequenceTakesTheLowestBlocksAndGivesThemBack) {
  CacheBlocks blocks(8, 2, 4);
  EXPECT_EQ(blocks.needed(0, 0, 17), 2);
  EXPECT_TRUE(grow(blocks, 0, 0, 17).empty());
  EXPECT_EQ(blocks.needed(0, 17, 32), 0);
  grow(blocks, 1, 0, 64);
  EXPECT_EQ(blocks.free(), 2);
  EXPECT_EQ(blocks.extent(), 6);
  blocks.shrink(0, 16);
  EXPECT_EQ(blocks.free(), 3);
  grow(blocks, 0, 16, 20);
  EXPECT_EQ(blocks.table()[1], 1);
  blocks.shrink(1, 0);
  EXPECT_EQ(blocks.extent(), 2);
  EXPECT_EQ(blocks.touched(), 6);
  blocks.reset_touched();
  EXPECT_EQ(blocks.touched(), 2);
}

TEST(CacheBlocks, SharedBlocksAreCopiedWhenTheyAreWritten) {
  CacheBlocks blocks(6, 3, 4);
  grow(blocks, 0, 0, 40);
  blocks.share(0, 1, 40);
  blocks.share(0, 2, 32);
  EXPECT_EQ(blocks.free(), 3);
  EXPECT_EQ(blocks.freed_without(std::vector<int64_t>{1, 2}), 0);
  EXPECT_EQ(blocks.freed_without(std::vector<int64_t>{0, 1}), 1);
  EXPECT_EQ(blocks.freed_without(std::vector<int64_t>{0, 1, 2}), 3);
  // The last block of the first two is written by either of them.
  EXPECT_EQ(blocks.needed(1, 40, 41), 1);
  EXPECT_EQ(grow(blocks, 1, 40, 41), (Copies{{2, 3}}));
  EXPECT_TRUE(grow(blocks, 0, 40, 41).empty());
  // Whole blocks stay shared.
  EXPECT_TRUE(grow(blocks, 2, 32, 33).empty());
  EXPECT_EQ(blocks.table()[0], blocks.table()[8]);
  blocks.shrink(0, 0);
  EXPECT_EQ(blocks.free(), 2);
  blocks.shrink(1, 0);
  blocks.shrink(2, 0);
  EXPECT_EQ(blocks.free(), 6);
}

TEST(CacheBlocks, TooFewBlocksAreAnError) {
  CacheBlocks blocks(2, 2, 4);
  EXPECT_THROW(grow(blocks, 0, 0, 33), Error);
  EXPECT_EQ(blocks.free(), 2);
  EXPECT_THROW(grow(blocks, 0, 0, 65), Error);
}

TEST(CacheBlocks, AnyOrderOfCallsKeepsTheCounts) {
  constexpr int64_t kSequences = 5, kMaxBlocks = 6;
  CacheBlocks blocks(20, kSequences, kMaxBlocks);
  std::vector<int64_t> lengths(kSequences, 0);
  std::mt19937 random(3);
  const auto below = [&](int64_t n) {
    return static_cast<int64_t>(random() % static_cast<uint64_t>(n));
  };
  for (int i = 0; i < 5000; ++i) {
    const int64_t s = below(kSequences), other = below(kSequences);
    int64_t& length = lengths[static_cast<size_t>(s)];
    switch (below(3)) {
      case 0: {
        const int64_t target = std::min(length + below(40), kMaxBlocks * CacheBlocks::kTokens);
        if (blocks.needed(s, length, target) > blocks.free()) break;
        std::set<int64_t> others;
        for (int64_t o = 0; o < kSequences; ++o)
          for (int64_t b = 0; o != s && b < CacheBlocks::count_for(lengths[static_cast<size_t>(o)]);
               ++b)
            others.insert(blocks.table()[static_cast<size_t>(o * kMaxBlocks + b)]);
        grow(blocks, s, length, target);
        // Blocks with new tokens belong to no other sequence.
        for (int64_t b = length / CacheBlocks::kTokens;
             target > length && b < CacheBlocks::count_for(target); ++b)
          ASSERT_FALSE(others.contains(blocks.table()[static_cast<size_t>(s * kMaxBlocks + b)]))
              << i;
        length = target;
        break;
      }
      case 1:
        length = below(length + 1);
        blocks.shrink(s, length);
        break;
      default:
        length = std::min(lengths[static_cast<size_t>(other)], below(100));
        blocks.share(other, s, length);
        break;
    }
    std::set<int64_t> used;
    for (int64_t o = 0; o < kSequences; ++o)
      for (int64_t b = 0; b < CacheBlocks::count_for(lengths[static_cast<size_t>(o)]); ++b)
        used.insert(blocks.table()[static_cast<size_t>(o * kMaxBlocks + b)]);
    ASSERT_EQ(blocks.free(), blocks.total() - std::ssize(used)) << i;
  }
}

}  // namespace
}  // namespace paddle::llm
