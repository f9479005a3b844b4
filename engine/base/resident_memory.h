#pragma once
// The memory of this process.

#include <cstdint>

namespace paddle {

/// The most bytes of this process that were in memory at a time, so far.
uint64_t peak_resident_bytes();

}  // namespace paddle
