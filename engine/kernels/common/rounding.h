#pragma once
// Sizes in whole parts.

#include <cstddef>
#include <cstdint>

namespace paddle::cpu {

/// How many parts of this size make up the whole; the last one may be smaller.
inline int64_t ceil_div(int64_t whole, int64_t part) { return (whole + part - 1) / part; }
/// Calls `body(first, size)` for parts of n as equal as may be, none larger than `most`.
template <class Body>
void split_evenly(int64_t n, int64_t most, Body body) {
  const int64_t count = ceil_div(n, most);
  for (int64_t i = 0; i < count; ++i) body(n * i / count, n * (i + 1) / count - n * i / count);
}
/// n in whole parts, such as vectors of so many lanes.
inline int64_t round_up(int64_t n, int64_t part) { return ceil_div(n, part) * part; }
/// Bytes in whole lines of the cache.
inline size_t round_up_to_cache_line(size_t bytes) { return (bytes + 63) / 64 * 64; }
/// Floats in whole lines of the cache.
inline size_t round_up_floats(int64_t floats) { return static_cast<size_t>(round_up(floats, 16)); }

}  // namespace paddle::cpu
