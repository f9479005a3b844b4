#pragma once
// Files of tokens: ids as little-endian uint16 or uint32, one after the other, without a header, as
// training programs for language models exchange them.

#include <cstdint>
#include <string>
#include <vector>

#include "text/tokenizer.h"

namespace paddle::tokenizers {

struct TokenFileOptions {
  std::string json_key = {};   ///< a document is this text of a JSON line; "": a file is one
  std::string end_token = {};  ///< after each document; "": `end_of_document` of JSON lines
  bool special = false;        ///< special tokens in the text are parsed
};
struct TokenFileSummary {
  int64_t tokens = 0, documents = 0;
  int bytes_each = 2;  ///< 2 if the vocabulary has at most 65536 tokens, else 4
};

/// Encodes the files in order and writes `output` atomically, or only counts where it is "". kData,
/// with the line, for records that lack the key or are damaged; kUsage for an end token that the
/// vocabulary lacks.
TokenFileSummary write_token_file(const Tokenizer& tokenizer, const std::vector<std::string>& files,
                                  const TokenFileOptions& options, const std::string& output);

/// The token that ends a document: that of the tokenizer's settings, or the one that is named as
/// such tokens are (<|endoftext|>, <|end_of_text|>, </s>, <eos>).
std::optional<TokenId> end_of_document(const Tokenizer& tokenizer);

}  // namespace paddle::tokenizers
