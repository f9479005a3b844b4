#pragma once
// The memory of this process.

#include <cstdint>

namespace paddle {

/// The bytes of this process that are in memory now; 0 if the system does not tell.
uint64_t resident_bytes();
/// The most bytes of this process that were in memory at a time, so far.
uint64_t peak_resident_bytes();

}  // namespace paddle
