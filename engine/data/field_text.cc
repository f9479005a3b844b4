#include "data/field_text.h"

#include <limits>

#include "base/error.h"

namespace paddle::data {

FieldText::FieldText(const Fitted& fitted) : tokenizer_(fitted.tokenizer), tokens_(fitted.tokens) {
  if (!tokenizer_ && (fitted.token_kind.empty() || tokens_.empty()))
    fail(ErrorCode::kUsage, "the field '", fitted.field, "' is not a text");
  if (tokenizer_) return;
  kind_ = parse_token_kind(fitted.token_kind).value_or(TokenKind::kCharacters);
  has_blanks_ = kind_ != TokenKind::kCharacters;
  lowercase_ = fitted.lowercase;
}

int64_t FieldText::size() const {
  return tokenizer_ ? tokenizer_->size() : static_cast<int64_t>(tokens_.size());
}

std::string FieldText::token(int64_t id) const {
  if (id < 0 || id >= size()) return str("<", id, ">");
  if (!tokenizer_) return tokens_[static_cast<size_t>(id)];
  const auto number = static_cast<tokenizers::TokenId>(id);
  return tokenizer_->tokenizer().decode({&number, 1}, true);
}

std::string FieldText::decode(std::span<const int64_t> ids) const {
  if (tokenizer_) {
    std::vector<tokenizers::TokenId> numbers;
    for (const int64_t id : ids)
      if (id >= 0 && id < size()) numbers.push_back(static_cast<tokenizers::TokenId>(id));
    return tokenizer_->tokenizer().decode(numbers);
  }
  std::string out;
  for (size_t i = 0; i < ids.size(); ++i) out += (has_blanks_ && i > 0 ? " " : "") + token(ids[i]);
  return out;
}

std::string FieldText::normalized(const std::string& text) const {
  if (tokenizer_) return text;
  const std::string cased = lowercase_ ? lowercase(text) : text;
  if (!has_blanks_) return cased;
  std::string out;
  for (const std::string_view token :
       split_tokens(cased, kind_, std::numeric_limits<int64_t>::max()))
    (out += out.empty() ? "" : " ") += token;
  return out;
}

}  // namespace paddle::data
