#include "text/sections.h"

#include <algorithm>

#include "text/unicode.h"

namespace paddle::tokenizers {

namespace {

bool is_space(char c) { return c == ' ' || (c >= '\t' && c <= '\r'); }

/// The character that ends before byte `end`.
uint32_t code_before(std::string_view text, size_t end) {
  size_t begin = end - 1;
  while (begin > 0 && end - begin < 4 && (static_cast<unsigned char>(text[begin]) & 0xc0) == 0x80)
    --begin;
  const Utf8Character c = utf8_character(text, begin);
  return c.length == end - begin ? c.code : 0xfffd;
}

}  // namespace

size_t section_length(std::string_view text, size_t limit) {
  if (text.size() <= limit) return text.size();
  size_t at_space = 0;
  for (size_t i = limit; i > limit / 2; --i) {
    if (!is_space(text[i])) continue;
    const uint32_t before = code_before(text, i);
    if (unicode::is_letter(before) || unicode::is_number(before)) return i;
    if (at_space == 0 && !unicode::is_white_space(before)) at_space = i;
  }
  if (at_space > 0) return at_space;
  size_t end = limit;
  while (end > limit - std::min<size_t>(limit, 4) + 1 &&
         (static_cast<unsigned char>(text[end]) & 0xc0) == 0x80)
    --end;
  return end;
}

void encode_sections(const Tokenizer& tokenizer, std::string_view text,
                     const EncodeOptions& options,
                     const std::function<void(std::span<const TokenId>)>& add) {
  while (!text.empty()) {
    const size_t length = section_length(text);
    const std::vector<TokenId> ids = tokenizer.encode(text.substr(0, length), options);
    add(ids);
    text.remove_prefix(length);
  }
}

}  // namespace paddle::tokenizers
