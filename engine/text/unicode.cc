#include "text/unicode.h"

#include <utf8proc.h>

#include <algorithm>
#include <cstdlib>
#include <memory>

#include "base/error.h"

namespace paddle::unicode {

namespace {

utf8proc_category_t category(uint32_t code) {
  return utf8proc_category(static_cast<utf8proc_int32_t>(code));
}

bool is_ascii(std::string_view text) {
  return std::all_of(text.begin(), text.end(), [](char c) { return (c & 0x80) == 0; });
}

}  // namespace

std::string normalize(std::string_view text, Form form) {
  if (is_ascii(text)) return std::string(text);
  int options = UTF8PROC_STABLE;
  options |= form == Form::kNfc || form == Form::kNfkc ? UTF8PROC_COMPOSE : UTF8PROC_DECOMPOSE;
  if (form == Form::kNfkc || form == Form::kNfkd) options |= UTF8PROC_COMPAT;
  utf8proc_uint8_t* out = nullptr;
  const utf8proc_ssize_t size = utf8proc_map(reinterpret_cast<const utf8proc_uint8_t*>(text.data()),
                                             static_cast<utf8proc_ssize_t>(text.size()), &out,
                                             static_cast<utf8proc_option_t>(options));
  const std::unique_ptr<utf8proc_uint8_t, void (*)(void*)> owner(out, std::free);
  if (size < 0) fail(ErrorCode::kData, "Unicode normalization: ", utf8proc_errmsg(size));
  return {reinterpret_cast<const char*>(out), static_cast<size_t>(size)};
}

bool is_white_space(uint32_t c) {
  return (c >= 9 && c <= 13) || c == 0x20 || c == 0x85 || c == 0xa0 || c == 0x1680 ||
         (c >= 0x2000 && c <= 0x200a) || c == 0x2028 || c == 0x2029 || c == 0x202f || c == 0x205f ||
         c == 0x3000;
}

bool is_punctuation(uint32_t code) {
  const auto c = category(code);
  return c >= UTF8PROC_CATEGORY_PC && c <= UTF8PROC_CATEGORY_PO;
}

bool is_other(uint32_t code) {
  const auto c = category(code);
  return c == UTF8PROC_CATEGORY_CN || (c >= UTF8PROC_CATEGORY_CC && c <= UTF8PROC_CATEGORY_CO);
}

bool is_unassigned(uint32_t code) { return category(code) == UTF8PROC_CATEGORY_CN; }

bool is_mark(uint32_t code) {
  const auto c = category(code);
  return c >= UTF8PROC_CATEGORY_MN && c <= UTF8PROC_CATEGORY_ME;
}

bool is_nonspacing_mark(uint32_t code) { return category(code) == UTF8PROC_CATEGORY_MN; }

bool is_number(uint32_t code) {
  const auto c = category(code);
  return c >= UTF8PROC_CATEGORY_ND && c <= UTF8PROC_CATEGORY_NO;
}

bool is_letter(uint32_t code) {
  const auto c = category(code);
  return c >= UTF8PROC_CATEGORY_LU && c <= UTF8PROC_CATEGORY_LO;
}

bool is_ideograph(uint32_t c) {
  return (c >= 0x4e00 && c <= 0x9fff) || (c >= 0x3400 && c <= 0x4dbf) ||
         (c >= 0x20000 && c <= 0x2a6df) || (c >= 0x2a700 && c <= 0x2b73f) ||
         (c >= 0x2b740 && c <= 0x2b81f) || (c >= 0x2b820 && c <= 0x2ceaf) ||
         (c >= 0xf900 && c <= 0xfaff) || (c >= 0x2f800 && c <= 0x2fa1f);
}

void append_lower(std::string& out, uint32_t code) {
  if (code == 0x130) {  // the only code point whose lower case is two
    out += "i\u0307";
    return;
  }
  append_utf8(out, static_cast<uint32_t>(utf8proc_tolower(static_cast<utf8proc_int32_t>(code))));
}

std::string lower(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  for_each(text, [&](uint32_t code, std::string_view) { append_lower(out, code); });
  return out;
}

size_t grapheme_length(std::string_view text, size_t i) {
  Utf8Character previous = utf8_character(text, i);
  size_t length = std::max<size_t>(previous.length, 1);
  utf8proc_int32_t state = 0;
  while (i + length < text.size()) {
    const Utf8Character next = utf8_character(text, i + length);
    if (next.length == 0 ||
        utf8proc_grapheme_break_stateful(static_cast<utf8proc_int32_t>(previous.code),
                                         static_cast<utf8proc_int32_t>(next.code), &state))
      break;
    length += next.length;
    previous = next;
  }
  return length;
}

namespace {

/// Bytes of the longest prefix of `bytes` that begins a well-formed character (at least 1), and
/// whether the text ends inside that character.
struct MalformedPrefix {
  size_t length = 1;
  bool truncated = false;
};
MalformedPrefix malformed_prefix(std::string_view bytes) {
  const auto at = [&](size_t i) { return static_cast<unsigned char>(bytes[i]); };
  const unsigned char first = at(0);
  size_t length = 0;
  unsigned char low = 0x80, high = 0xbf;  // of the second byte
  if (first >= 0xc2 && first <= 0xdf) length = 2;
  if (first >= 0xe0 && first <= 0xef) {
    length = 3;
    if (first == 0xe0) low = 0xa0;
    if (first == 0xed) high = 0x9f;
  }
  if (first >= 0xf0 && first <= 0xf4) {
    length = 4;
    if (first == 0xf0) low = 0x90;
    if (first == 0xf4) high = 0x8f;
  }
  if (length == 0) return {1, false};
  size_t i = 1;
  while (i < length && i < bytes.size() && at(i) >= (i == 1 ? low : 0x80) &&
         at(i) <= (i == 1 ? high : 0xbf))
    ++i;
  return {i, i < length && i == bytes.size()};
}

}  // namespace

std::string to_valid_utf8(std::string_view bytes) {
  std::string out;
  out.reserve(bytes.size());
  for (size_t i = 0; i < bytes.size();) {
    if (const size_t length = utf8_character(bytes, i).length) {
      out.append(bytes, i, length);
      i += length;
      continue;
    }
    out += "\ufffd";
    i += malformed_prefix(bytes.substr(i)).length;
  }
  return out;
}

std::string_view beginning(std::string_view text, size_t bytes) {
  if (text.size() <= bytes) return text;
  while (bytes > 0 && (static_cast<unsigned char>(text[bytes]) & 0xc0) == 0x80) --bytes;
  return text.substr(0, bytes);
}

size_t incomplete_suffix(std::string_view bytes) {
  for (size_t back = 1; back <= 3 && back <= bytes.size(); ++back) {
    const std::string_view end = bytes.substr(bytes.size() - back);
    if ((static_cast<unsigned char>(end[0]) & 0xc0) == 0x80) continue;
    return utf8_character(end, 0).length == 0 && malformed_prefix(end).truncated ? back : 0;
  }
  return 0;
}

}  // namespace paddle::unicode
