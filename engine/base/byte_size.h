#pragma once
// Amounts of memory as people write them.

#include <cstdint>
#include <optional>
#include <string>

namespace paddle {

/// "2GB", "500 MiB", "1000000" in bytes, from 1 to 2^60; nullopt for anything else.
std::optional<uint64_t> parse_byte_size(const std::string& text);

}  // namespace paddle
