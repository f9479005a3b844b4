#pragma once
// UTF-8 encoding and decoding of code points.

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace paddle {

/// Appends the bytes of a code point (at most 0x10ffff).
void append_utf8(std::string& out, uint32_t code);

struct Utf8Character {
  size_t length = 0;  ///< in bytes; 0 if the sequence is malformed
  uint32_t code = 0;
};
/// The character that begins at `text[i]`. Overlong forms and surrogates are malformed.
Utf8Character utf8_character(std::string_view text, size_t i);

}  // namespace paddle
