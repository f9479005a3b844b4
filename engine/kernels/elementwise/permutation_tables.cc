#include "kernels/elementwise/permutation_tables.h"

#include <algorithm>

namespace paddle::cpu {
namespace {

/// at + by modulo n, for numbers below n.
uint32_t turn(uint32_t at, uint32_t by, uint32_t n) {
  const uint32_t sum = at + by;
  return sum >= n ? sum - n : sum;
}

}  // namespace

size_t PermutationTables::bytes(uint64_t n) {
  // Larger tables leave the cache.
  constexpr uint64_t kLeast = 1 << 12, kMost = 1 << 28;
  if (n < kLeast || n > kMost) return 0;
  const Permutation order(n, 0);
  return Permutation::kRounds / 2 * (order.rows() + order.columns()) * sizeof(uint32_t);
}

PermutationTables::PermutationTables(const Permutation& order, void* memory)
    : order_(order), tables_(static_cast<uint32_t*>(memory)) {
  auto* to = static_cast<uint32_t*>(memory);
  for (size_t round = 0; round < Permutation::kRounds; round += 2) {
    for (uint64_t c = 0; c < order.columns(); ++c)
      *to++ = static_cast<uint32_t>(Random::scale(mix64(order.keys()[round] ^ c), order.rows()));
    for (uint64_t r = 0; r < order.rows(); ++r)
      *to++ =
          static_cast<uint32_t>(Random::scale(mix64(order.keys()[round + 1] ^ r), order.columns()));
  }
}

void PermutationTables::elements(uint64_t first, int64_t count, int64_t* out) const {
  constexpr size_t kLanes = 8;  // several at a time, since each waits for its last look-up
  const auto rows = static_cast<uint32_t>(order_.rows()),
             columns = static_cast<uint32_t>(order_.columns());
  auto row = static_cast<uint32_t>(first / columns),
       column = static_cast<uint32_t>(first % columns);
  for (int64_t i = 0; i < count; i += kLanes) {
    uint32_t r[kLanes], c[kLanes];
    for (size_t k = 0; k < kLanes; ++k) {
      r[k] = row < rows ? row : 0;  // beyond the end: not used
      c[k] = column;
      if (++column == columns) {
        column = 0;
        ++row;
      }
    }
    const uint32_t* table = tables_;
    for (size_t round = 0; round < Permutation::kRounds; round += 2) {
      for (size_t k = 0; k < kLanes; ++k) r[k] = turn(r[k], table[c[k]], rows);
      table += columns;
      for (size_t k = 0; k < kLanes; ++k) c[k] = turn(c[k], table[r[k]], columns);
      table += rows;
    }
    const auto n = static_cast<size_t>(std::min<int64_t>(kLanes, count - i));
    for (size_t k = 0; k < n; ++k) {
      const uint64_t place = uint64_t{r[k]} * columns + c[k];
      out[i + static_cast<int64_t>(k)] =
          static_cast<int64_t>(place < order_.size() ? place : order_(place));
    }
  }
}

}  // namespace paddle::cpu
