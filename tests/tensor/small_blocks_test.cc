#include "tensor/small_blocks.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <set>
#include <thread>
#include <vector>

namespace paddle {
namespace {

TEST(SmallBlocks, AreAlignedAndDistinct) {
  std::set<std::byte*> live;
  std::vector<std::pair<std::byte*, size_t>> blocks;
  for (int turn = 0; turn < 3; ++turn) {
    for (const size_t bytes :
         {size_t{0}, size_t{1}, size_t{64}, size_t{65}, size_t{4096}, kMaxPooled - 1, kMaxPooled})
      for (int i = 0; i < 20; ++i) {
        std::byte* const data = take_block(bytes);
        ASSERT_EQ(reinterpret_cast<uintptr_t>(data) % 64, 0u);
        ASSERT_TRUE(live.insert(data).second) << bytes;
        std::memset(data, 0xab, bytes);
        blocks.emplace_back(data, bytes);
      }
    for (const auto& [data, bytes] : blocks) release_block(data, bytes);
    blocks.clear();
    live.clear();
  }
}

TEST(SmallBlocks, MoveBetweenThreads) {
  std::vector<std::byte*> blocks;
  std::thread([&] {
    for (int i = 0; i < 1000; ++i) blocks.push_back(take_block(128));
  }).join();
  for (std::byte* data : blocks) release_block(data, 128);
  std::thread([&] {
    for (int i = 0; i < 1000; ++i) release_block(take_block(128), 128);
  }).join();
  release_block(nullptr, 128);
}

}  // namespace
}  // namespace paddle
