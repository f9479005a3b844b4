#pragma once
// A hash that is stable across machines and runs, for trusted text.

#include <cstdint>
#include <string_view>

namespace paddle {

/// FNV-1a.
inline uint64_t fnv1a(std::string_view text) {
  uint64_t hash = 0xcbf29ce484222325;
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3;
  return hash;
}

}  // namespace paddle
