#include "text/token_bytes.h"

#include <cstdio>

#include "text/byte_alphabet.h"

namespace paddle::tokenizers {

TokenBytes::TokenBytes(const Tokenizer& tokenizer) : tokenizer_(tokenizer) {
  // A token behind a letter shows what it adds.
  for (const char* text : {"a", "A", "e", "0", "."})
    if (const auto found = tokenizer.find(text);
        found && !tokenizer.is_special(*found) && tokenizer.decode(std::vector{*found}) == text) {
      anchor_ = found;
      before_ = text;
      return;
    }
}

std::string TokenBytes::of(TokenId token, bool first) const {
  const std::string* const spelling = tokenizer_.token(token);
  if (!spelling) return "";
  if (tokenizer_.is_special(token)) return *spelling;
  const bool alone = first || !anchor_;
  std::string text = tokenizer_.decode(alone ? std::vector{token} : std::vector{*anchor_, token});
  if (!alone) {
    if (!text.starts_with(before_)) return "";
    text.erase(0, before_.size());
  }
  // A part of a character is not text by itself: the spelling says its bytes.
  if (text.find("\ufffd") == text.npos) return text;
  if (const auto byte = byte_of_token(*spelling)) return std::string(1, static_cast<char>(*byte));
  return from_byte_characters(*spelling).value_or(text);
}

std::string escaped_bytes(std::string_view bytes) {
  std::string out;
  for (const char c : bytes) {
    char buffer[8];
    out.append(buffer, static_cast<size_t>(std::snprintf(buffer, sizeof buffer, "\\x%02x",
                                                         static_cast<unsigned char>(c))));
  }
  return out;
}

}  // namespace paddle::tokenizers
