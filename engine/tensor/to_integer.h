#pragma once
// Floating-point numbers as integers, defined for all of them.

#include <concepts>
#include <cstdint>
#include <type_traits>

namespace paddle {

/// Rounded towards zero, then the low bits that `To` holds. What 64 bits do not hold (NaN included)
/// becomes their least value first, as on x86.
template <std::integral To, std::floating_point From>
To to_integer(From value) {
  if constexpr (std::is_same_v<To, uint64_t>) {
    if (value >= From(0x1p63))
      return value < From(0x1p64) ? static_cast<uint64_t>(value) : uint64_t{1} << 63;
  }
  const bool fits = value >= From(-0x1p63) && value < From(0x1p63);
  return static_cast<To>(fits ? static_cast<int64_t>(value) : INT64_MIN);
}

}  // namespace paddle
