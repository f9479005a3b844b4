#pragma once
// Bytes as hexadecimal digits.

#include <cstddef>
#include <span>
#include <string>
#include <string_view>

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

/// Reads two digits for each byte of `out`; false for other characters or another number of them.
inline bool read_hex_digits(std::string_view digits, std::span<std::byte> out) {
  if (digits.size() != 2 * out.size()) return false;
  for (size_t i = 0; i < out.size(); ++i) {
    const int high = hex_value(digits[2 * i]), low = hex_value(digits[2 * i + 1]);
    if (high < 0 || low < 0) return false;
    out[i] = static_cast<std::byte>(high * 16 + low);
  }
  return true;
}

}  // namespace paddle
