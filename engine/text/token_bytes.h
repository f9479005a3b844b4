#pragma once
// The bytes that each token adds to a text, those of parts of characters too.

#include <optional>
#include <string>

#include "text/tokenizer.h"

namespace paddle::tokenizers {

class TokenBytes {
 public:
  explicit TokenBytes(const Tokenizer& tokenizer);

  /// Within a text, or as its first token, where some tokenizers leave out a space. The spelling of
  /// a special token; nothing for an id without a token.
  std::string of(TokenId token, bool first = false) const;

 private:
  const Tokenizer& tokenizer_;
  std::optional<TokenId> anchor_;  ///< a token in front of others
  std::string before_;             ///< its text
};

/// Bytes of an incomplete character in a readable form: "\xf0\x9f".
std::string escaped_bytes(std::string_view bytes);

}  // namespace paddle::tokenizers
