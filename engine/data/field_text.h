#pragma once
// The text that the tokens of a field stand for, by what the training rows fitted.

#include <span>
#include <string>

#include "data/fitted.h"
#include "data/tokens.h"

namespace paddle::data {

class FieldText {
 public:
  /// kUsage for a field that is not a text.
  explicit FieldText(const Fitted& fitted);

  int64_t size() const;
  /// "<7>" for numbers that are not tokens.
  std::string token(int64_t id) const;
  /// The tokens one after the other: characters and subwords as they are, words with blanks
  /// between them.
  std::string decode(std::span<const int64_t> ids) const;
  /// A text of the data in the form of a decoded one: in small letters where the field has them,
  /// words with one blank between them. With a tokenizer it stays as it is.
  std::string normalized(const std::string& text) const;

 private:
  TextTokenizerPtr tokenizer_;
  std::vector<std::string> tokens_;
  bool has_blanks_ = false, lowercase_ = false;
  TokenKind kind_ = TokenKind::kCharacters;
};

}  // namespace paddle::data
