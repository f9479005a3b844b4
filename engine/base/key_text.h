#pragma once
// Keys of 64 bits in decimal, as configs, tables of text and command lines have them.

#include <charconv>
#include <cstdint>
#include <string_view>
#include <system_error>

namespace paddle {

/// Reads the bits of an int64, or of a uint64. The error is invalid_argument unless the whole text
/// is a number, and result_out_of_range for one that the type does not hold.
inline std::errc read_key(std::string_view text, bool is_signed, uint64_t& key) {
  const char* const end = text.data() + text.size();
  int64_t number = 0;
  const auto [rest, error] = is_signed ? std::from_chars(text.data(), end, number)
                                       : std::from_chars(text.data(), end, key);
  if (is_signed) key = static_cast<uint64_t>(number);
  return error == std::errc() && rest != end ? std::errc::invalid_argument : error;
}

}  // namespace paddle
