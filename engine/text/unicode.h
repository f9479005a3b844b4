#pragma once
// Unicode: classes of code points, normalization forms, lower case and grapheme clusters. Tables
// are those of utf8proc. Texts are valid UTF-8; `to_valid_utf8` makes one of any bytes.

#include <cstdint>
#include <string>
#include <string_view>

#include "base/utf8.h"

namespace paddle::unicode {

enum class Form { kNfc, kNfd, kNfkc, kNfkd };
std::string normalize(std::string_view text, Form form);

bool is_white_space(uint32_t code);      ///< property White_Space
bool is_punctuation(uint32_t code);      ///< categories P*
bool is_other(uint32_t code);            ///< categories C*: control, format, unassigned, private
bool is_unassigned(uint32_t code);       ///< category Cn, and non-characters
bool is_mark(uint32_t code);             ///< categories M*
bool is_nonspacing_mark(uint32_t code);  ///< category Mn
bool is_number(uint32_t code);           ///< categories N*
bool is_letter(uint32_t code);           ///< categories L*
bool is_ideograph(uint32_t code);        ///< the CJK blocks that BERT separates

/// Appends the lower case of one code point; without the context that a final sigma needs.
void append_lower(std::string& out, uint32_t code);
std::string lower(std::string_view text);

/// Bytes of the grapheme cluster that begins at `text[i]`.
size_t grapheme_length(std::string_view text, size_t i);

/// Replaces each maximal malformed sequence by U+FFFD.
std::string to_valid_utf8(std::string_view bytes);
/// Bytes at the end that begin a character but do not complete it.
size_t incomplete_suffix(std::string_view bytes);

/// At most `bytes` bytes of a text, without cutting a character: for messages.
std::string_view beginning(std::string_view text, size_t bytes = 100);

/// Calls `callback(code, characters)` for each code point, with its bytes.
template <class Callback>
void for_each(std::string_view text, Callback&& callback) {
  for (size_t i = 0; i < text.size();) {
    const Utf8Character c = utf8_character(text, i);
    const size_t length = c.length ? c.length : 1;
    callback(c.length ? c.code : 0xfffdU, text.substr(i, length));
    i += length;
  }
}

}  // namespace paddle::unicode
