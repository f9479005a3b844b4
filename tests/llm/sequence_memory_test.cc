// How far back a sequence can go with each kind of cache.

#include "llm/sequence_memory.h"

#include <gtest/gtest.h>

#include "base/error.h"

namespace paddle::llm {
namespace {

using Memories = std::vector<SequenceMemory>;

TEST(SequenceMemory, KindsHaveNames) {
  for (const MemoryKind kind :
       {MemoryKind::kTokens, MemoryKind::kWindow, MemoryKind::kState, MemoryKind::kEncoded})
    EXPECT_EQ(memory_kind(text(kind)), kind);
  EXPECT_EQ(text(MemoryKind::kWindow), "window");
  EXPECT_EQ(memory_kind("rows"), std::nullopt);
}

TEST(SequenceExtent, TokensGoBackToAnyLength) {
  const Memories memories = {{"keys"}, {"values"}, {"cross", MemoryKind::kEncoded}};
  SequenceExtent extent(memories);
  extent.grow(10);
  EXPECT_EQ(extent.reachable(7), 7);
  EXPECT_EQ(extent.reachable(20), 10);
  EXPECT_EQ(extent.reachable(-1), 0);
  EXPECT_EQ(extent.truncate(7), 7);
  EXPECT_EQ(extent.length(), 7);
  extent.keep_snapshot();  // of no state
  EXPECT_EQ(extent.truncate(3), 3);
}

TEST(SequenceExtent, WindowsGoBackToWhatTheyStillHave) {
  const Memories memories = {{"keys"}, {"local", MemoryKind::kWindow, 4}};
  SequenceExtent extent(memories);
  extent.grow(20);
  EXPECT_EQ(extent.truncate(5), 5) << "nothing was given back";
  extent.grow(15);
  EXPECT_THROW(extent.give_back(18), Error) << "the next token reads rows 17 to 20";
  extent.give_back(12);
  EXPECT_EQ(extent.window_begin(), 12);
  EXPECT_EQ(extent.reachable(15), 15) << "token 15 reads rows 12 to 15";
  EXPECT_EQ(extent.reachable(14), 0);
  SequenceExtent copy(memories);
  copy.copy(extent, 16);
  EXPECT_EQ(copy.length(), 16);
  EXPECT_EQ(copy.reachable(15), 15);
  EXPECT_THROW(copy.copy(extent, 14), Error);
  EXPECT_EQ(extent.truncate(14), 0);
  EXPECT_EQ(extent.window_begin(), 0) << "it begins again";
  extent.grow(6);
  EXPECT_EQ(extent.truncate(2), 2);
}

TEST(SequenceExtent, StatesGoBackToSnapshots) {
  const Memories memories = {{"state", MemoryKind::kState}};
  SequenceExtent extent(memories);
  extent.grow(8);
  extent.keep_snapshot();
  extent.grow(8);
  extent.keep_snapshot();
  extent.grow(3);
  EXPECT_EQ(extent.reachable(19), 19);
  EXPECT_EQ(extent.reachable(18), 16);
  EXPECT_EQ(extent.reachable(16), 16);
  EXPECT_EQ(extent.reachable(15), 8);
  EXPECT_EQ(extent.reachable(7), 0);
  SequenceExtent copy(memories);
  copy.copy(extent, 8);
  copy.grow(1);
  EXPECT_EQ(copy.truncate(8), 8);
  EXPECT_EQ(extent.truncate(15), 8);
  extent.grow(20);
  EXPECT_EQ(extent.reachable(17), 8) << "snapshots after a length that was dropped are gone";
}

TEST(SequenceExtent, AllKindsMustReachALength) {
  const Memories memories = {{"state", MemoryKind::kState}, {"local", MemoryKind::kWindow, 4}};
  SequenceExtent extent(memories);
  extent.grow(8);
  extent.keep_snapshot();
  extent.grow(8);
  extent.keep_snapshot();
  extent.grow(4);
  extent.give_back(10);
  EXPECT_EQ(extent.reachable(18), 16);
  EXPECT_EQ(extent.reachable(15), 0) << "the window of the snapshot at 8 was given back";
}

}  // namespace
}  // namespace paddle::llm
