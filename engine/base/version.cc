#include "base/version.h"

#include <array>
#include <cstdint>

namespace paddle {
namespace {

using Numbers = std::array<uint64_t, 4>;

/// The numbers, and whether they are the whole text.
bool read_numbers(std::string_view text, Numbers& out) {
  out = {};
  for (uint64_t& number : out) {
    size_t digits = 0;
    while (digits < text.size() && digits < 9 && text[digits] >= '0' && text[digits] <= '9')
      number = number * 10 + static_cast<uint64_t>(text[digits++] - '0');
    if (digits == 0) return false;
    text.remove_prefix(digits);
    if (text.empty()) return true;
    if (text[0] != '.') return false;
    text.remove_prefix(1);
  }
  return false;
}

}  // namespace

bool is_older_version(std::string_view a, std::string_view b) {
  Numbers left, right;
  read_numbers(a, left);
  read_numbers(b, right);
  return left < right;
}

bool is_version(std::string_view text) {
  Numbers ignored;
  return read_numbers(text, ignored);
}

}  // namespace paddle
