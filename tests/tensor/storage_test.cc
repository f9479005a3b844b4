// Memory that holds arrays: borrowed bytes at any address, and pools.

#include <gtest/gtest.h>

#include <cstring>
#include <thread>

#include "tensor/array_pool.h"

namespace paddle {
namespace {

TEST(Storage, AlignsBorrowedBytesWhenTheyAreFirstRead) {
  std::vector<std::byte> bytes(4001);
  for (size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<std::byte>(i * 7);
  for (const size_t offset : {1, 2, 3}) {
    const auto storage = Storage::borrow_unaligned(bytes.data() + offset, 3996, nullptr);
    EXPECT_EQ(storage->source(), bytes.data() + offset);
    std::vector<std::byte*> seen(4);
    std::vector<std::thread> readers;
    for (std::byte*& place : seen)
      readers.emplace_back([&place, &storage] { place = storage->data(); });
    for (std::thread& t : readers) t.join();
    for (const std::byte* place : seen) EXPECT_EQ(place, seen[0]);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(seen[0]) % 64, 0u);
    EXPECT_EQ(std::memcmp(seen[0], bytes.data() + offset, 3996), 0);
    EXPECT_EQ(storage->source(), bytes.data() + offset);
  }
}

TEST(Storage, OfAPoolLiesApart) {
  ArrayPool pool;
  std::vector<std::shared_ptr<Storage>> all;
  const size_t sizes[] = {1,       5000, 3 << 20, 100,     7 << 20, 8 << 20,
                          9 << 20, 70,   8 << 20, 5 << 20, 1};
  for (const size_t bytes : sizes) {
    all.push_back(pool.allocate(bytes));
    ASSERT_EQ(all.back()->bytes(), bytes);
    ASSERT_EQ(reinterpret_cast<uintptr_t>(all.back()->data()) % 64, 0u);
    std::memset(all.back()->data(), static_cast<int>(all.size()), bytes);
  }
  for (size_t i = 0; i < all.size(); ++i)
    for (size_t k = 0; k < all[i]->bytes(); k += 997)
      ASSERT_EQ(all[i]->data()[k], static_cast<std::byte>(i + 1)) << i << " at " << k;
}

}  // namespace
}  // namespace paddle
