#include "llm/cache_blocks.h"

#include <algorithm>
#include <map>

#include "base/error.h"
#include "ops/generation/packed_format.h"

namespace paddle::llm {

static_assert(CacheBlocks::kTokens == kKeyBlock);

CacheBlocks::CacheBlocks(int64_t blocks, int64_t sequences, int64_t longest)
    : longest_(longest),
      table_(static_cast<size_t>(sequences * longest), 0),
      counts_(static_cast<size_t>(sequences), 0),
      uses_(static_cast<size_t>(blocks), 0) {
  std::vector<int64_t> all(static_cast<size_t>(blocks));
  for (size_t i = 0; i < all.size(); ++i) all[i] = static_cast<int64_t>(i);
  free_ = decltype(free_)(std::greater<>(), std::move(all));
}

int64_t CacheBlocks::extent() const {
  const auto last = std::find_if(uses_.rbegin(), uses_.rend(), [](int32_t n) { return n > 0; });
  return uses_.rend() - last;
}

int64_t CacheBlocks::take() {
  ensure(!free_.empty(), "the cache has no free block");
  const int64_t block = free_.top();
  free_.pop();
  uses_[static_cast<size_t>(block)] = 1;
  touched_ = std::max(touched_, block + 1);
  return block;
}

void CacheBlocks::drop(int64_t block) {
  if (--uses_[static_cast<size_t>(block)] == 0) free_.push(block);
}

int64_t CacheBlocks::needed(int64_t sequence, int64_t length, int64_t target) const {
  const int64_t count = counts_[static_cast<size_t>(sequence)];
  int64_t out = std::max<int64_t>(0, count_for(target) - count);
  if (target > length && length % kTokens != 0 &&
      uses_[static_cast<size_t>(blocks_of(sequence)[length / kTokens])] > 1)
    ++out;
  return out;
}

void CacheBlocks::grow(int64_t sequence, int64_t length, int64_t target,
                       const std::function<void(int64_t, int64_t)>& copy) {
  ensure(target <= longest_ * kTokens, "grow: the sequence is too long");
  ensure(needed(sequence, length, target) <= free(), "the cache has too few free blocks");
  int64_t* const blocks = blocks_of(sequence);
  int64_t& count = counts_[static_cast<size_t>(sequence)];
  if (target > length && length % kTokens != 0) {
    int64_t& last = blocks[length / kTokens];
    if (uses_[static_cast<size_t>(last)] > 1) {
      const int64_t own = take();
      copy(last, own);
      drop(last);
      last = own;
    }
  }
  while (count < count_for(target)) blocks[count++] = take();
}

void CacheBlocks::shrink(int64_t sequence, int64_t length) {
  int64_t* const blocks = blocks_of(sequence);
  int64_t& count = counts_[static_cast<size_t>(sequence)];
  while (count > count_for(length)) {
    drop(blocks[--count]);
    blocks[count] = 0;
  }
}

void CacheBlocks::share(int64_t from, int64_t to, int64_t length) {
  if (from == to) return shrink(to, length);
  const int64_t shared = count_for(length);
  const int64_t* const source = blocks_of(from);
  for (int64_t i = 0; i < shared; ++i) ++uses_[static_cast<size_t>(source[i])];
  shrink(to, 0);
  std::copy_n(source, shared, blocks_of(to));
  counts_[static_cast<size_t>(to)] = shared;
}

int64_t CacheBlocks::freed_without(std::span<const int64_t> sequences) const {
  std::map<int64_t, int32_t> dropped;
  for (const int64_t sequence : sequences)
    for (int64_t i = 0; i < counts_[static_cast<size_t>(sequence)]; ++i)
      ++dropped[blocks_of(sequence)[i]];
  return std::count_if(dropped.begin(), dropped.end(), [&](const auto& each) {
    return each.second == uses_[static_cast<size_t>(each.first)];
  });
}

}  // namespace paddle::llm
