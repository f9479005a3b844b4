#pragma once
// Bytes as hexadecimal digits.

#include <cstddef>
#include <span>
#include <string>

namespace paddle {

/// Two digits for each byte, in lower case.
inline std::string hex_digits(std::span<const std::byte> bytes) {
  constexpr char kDigits[] = "0123456789abcdef";
  std::string out;
  out.reserve(2 * bytes.size());
  for (const std::byte b : bytes) {
    out += kDigits[std::to_integer<unsigned>(b) >> 4];
    out += kDigits[std::to_integer<unsigned>(b) & 15];
  }
  return out;
}

/// The value of such a digit; -1 for other characters, upper case among them.
inline int hex_value(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  return -1;
}

}  // namespace paddle
