#include "text/token_bytes.h"

#include <fmt/core.h>

#include <cstdio>

#include "text/byte_alphabet.h"

namespace paddle::tokenizers {

TokenBytes::TokenBytes(const Tokenizer& tokenizer) : tokenizer_(tokenizer) {
  // A token after another one shows what it adds: a letter if there is one, else any token whose
  // text is the same anywhere.
  for (const auto& [token, text] :
       {std::pair("a", "a"), {"A", "A"}, {"e", "e"}, {"0", "0"}, {".", "."}, {"<0x61>", "a"}})
    if (const auto found = tokenizer.find(token);
        found && !tokenizer.is_special(*found) && tokenizer.decode(std::vector{*found}) == text) {
      anchor_ = found;
      before_ = text;
      return;
    }
  for (TokenId id = 0; id < static_cast<TokenId>(tokenizer.vocabulary_size()); ++id) {
    if (!tokenizer.token(id) || tokenizer.is_special(id)) continue;
    before_ = tokenizer.decode(std::vector{id});
    if (before_.empty() || before_.find("\ufffd") != before_.npos ||
        tokenizer.decode(std::vector{id, id}) != before_ + before_)
      continue;
    anchor_ = id;
    return;
  }
}

std::string TokenBytes::of(TokenId token, bool first) const {
  const std::string* const spelling = tokenizer_.token(token);
  if (!spelling) return "";
  if (tokenizer_.is_special(token)) return *spelling;
  const bool alone = first || !anchor_;
  std::string text = tokenizer_.decode(alone ? std::vector{token} : std::vector{*anchor_, token});
  if (!alone && text.starts_with(before_))
    text.erase(0, before_.size());
  else if (!alone && text.find("\ufffd") == text.npos)
    return "";
  // A part of a character is not text by itself: the spelling says its bytes.
  if (text.find("\ufffd") == text.npos) return text;
  if (const auto byte = byte_of_token(*spelling)) return std::string(1, static_cast<char>(*byte));
  return from_byte_characters(*spelling).value_or(text);
}

std::string escaped_bytes(std::string_view bytes) {
  std::string out;
  for (const char c : bytes) out += fmt::format("\\x{:02x}", static_cast<unsigned char>(c));
  return out;
}

}  // namespace paddle::tokenizers
