#pragma once
// Limits of sizes that operations and kernels share.

#include <cstdint>
#include <limits>
#include <string_view>

#include "base/error.h"
#include "base/limits.h"

namespace paddle {

/// Throws kUsage, named by `what`, unless 32 bits hold a size, count or factor, so that 64 bits
/// hold sums and products of two of them.
template <class... What>
void require_32_bits(int64_t value, const What&... what) {
  constexpr int64_t kMax = std::numeric_limits<int32_t>::max();
  if (value > kMax) fail(ErrorCode::kUsage, what..., " must be ", kMax, " at most, not ", value);
  if (value < -kMax) fail(ErrorCode::kUsage, what..., " must be ", -kMax, " at least, not ", value);
}

/// Throws kUsage if `places` indices, of 8 bytes each, would take more than half of the memory.
inline void check_index_count(std::string_view op, int64_t places) {
  if (places > limits().memory / 16)
    fail(ErrorCode::kUsage, op, ": indices of ", places,
         " places would take more than half of the memory");
}

}  // namespace paddle
