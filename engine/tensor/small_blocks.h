#pragma once
// Memory for small arrays: blocks that each thread keeps when they are released and gives out
// again, since eager programs make and drop an array at every call.

#include <cstddef>

namespace paddle {

/// The largest size that the functions below serve.
inline constexpr size_t kMaxPooled = size_t{64} << 10;

/// 64-byte aligned memory of at least `bytes` bytes, its content undefined; kDevice if there is
/// none.
std::byte* take_block(size_t bytes);
/// Releases memory of `bytes` bytes that `take_block` or, if it is larger, std::aligned_alloc
/// returned, on any thread.
void release_block(std::byte* data, size_t bytes);

}  // namespace paddle
