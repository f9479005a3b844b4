#pragma once
// Integer rounding helpers.

#include <cstddef>
#include <cstdint>

namespace paddle::cpu {

/// n / divisor, rounded up.
inline int64_t ceil_div(int64_t n, int64_t divisor) { return (n + divisor - 1) / divisor; }
/// Calls `body(first, size)` for consecutive ranges of n items that are as equal as possible and at
/// most `max_size` long.
template <class Body>
void split_evenly(int64_t n, int64_t max_size, Body body) {
  const int64_t count = ceil_div(n, max_size);
  for (int64_t i = 0; i < count; ++i) body(n * i / count, n * (i + 1) / count - n * i / count);
}
/// n rounded up to a multiple, such as the number of SIMD lanes.
inline int64_t round_up(int64_t n, int64_t multiple) { return ceil_div(n, multiple) * multiple; }
/// Bytes rounded up to whole cache lines.
inline size_t round_up_to_cache_line(size_t bytes) { return (bytes + 63) / 64 * 64; }
/// Number of floats rounded up to whole cache lines.
inline size_t round_up_floats(int64_t floats) { return static_cast<size_t>(round_up(floats, 16)); }

}  // namespace paddle::cpu
