#pragma once
// CRC-32C (Castagnoli), the checksum of frames and logs.

#include <cstddef>
#include <cstdint>
#include <span>

namespace paddle {

/// Pass the previous result to continue.
uint32_t crc32c(std::span<const std::byte> bytes, uint32_t previous = 0);

}  // namespace paddle
