// Memory planning: assigns offsets in the arena greedily, largest buffer first, each at the lowest
// offset that is free for its whole lifetime.

#include <algorithm>
#include <numeric>

#include "runtime/plan.h"

namespace paddle::runtime {

size_t assign_offsets(std::vector<Buffer>& buffers, size_t guard, size_t alignment) {
  const auto taken = [=](const Buffer& b) {
    return (b.bytes + alignment - 1) / alignment * alignment + guard;
  };
  std::vector<size_t> order;
  for (size_t i = 0; i < buffers.size(); ++i)
    if (buffers[i].kind == BufferKind::kArena && buffers[i].bytes > 0) order.push_back(i);
  std::sort(order.begin(), order.end(), [&](size_t a, size_t b) {
    return buffers[a].bytes != buffers[b].bytes ? buffers[a].bytes > buffers[b].bytes : a < b;
  });
  std::vector<size_t> placed;  // sorted by offset
  size_t total = 0;
  for (const size_t i : order) {
    Buffer& b = buffers[i];
    const size_t bytes = taken(b);
    size_t at = guard;
    for (const size_t p : placed) {
      const Buffer& other = buffers[p];
      if (other.last < b.first || other.first > b.last) continue;
      if (at + bytes <= other.offset) break;
      at = std::max(at, other.offset + taken(other));
    }
    b.offset = at;
    total = std::max(total, at + bytes);
    placed.insert(
        std::upper_bound(placed.begin(), placed.end(), i,
                         [&](size_t x, size_t y) { return buffers[x].offset < buffers[y].offset; }),
        i);
  }
  return total;
}

}  // namespace paddle::runtime
