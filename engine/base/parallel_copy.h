#pragma once
// Copies on all threads, for memory that one of them would be too slow to read or to touch first.

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "base/parallel.h"

namespace paddle {

/// memcpy of `bytes` bytes in parts of `grain` or more.
inline void parallel_copy(void* to, const void* from, int64_t bytes, int64_t grain = 65536) {
  parallel_for(bytes, grain, [&](int64_t begin, int64_t end) {
    std::memcpy(static_cast<std::byte*>(to) + begin, static_cast<const std::byte*>(from) + begin,
                static_cast<size_t>(end - begin));
  });
}

}  // namespace paddle
