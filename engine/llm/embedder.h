#pragma once
// Embeddings of texts by an encoder: a family with a function `embed`, which gives the hidden
// values of a text's tokens.

#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "llm/language_model.h"
#include "llm/sentence_modules.h"
#include "text/tokenizer.h"

namespace paddle::llm {

/// Whether the family of the model in this path has a function `embed`.
bool is_encoder(const std::string& path, const std::string& family);

class Embedder {
 public:
  Embedder(const std::string& path, const ModelOptions& options);

  const tokenizers::Tokenizer& tokenizer() const { return tokenizer_; }
  int64_t context() const { return context_; }  ///< tokens of a text
  int64_t width() const { return width_; }
  /// The tokens of a text with the tokenizer's own beginning and end; kUsage if there are more
  /// than the context has.
  std::vector<tokenizers::TokenId> tokens(const std::string& text) const;
  /// The vector of a text, of length 1 unless the model's files say otherwise. It does not depend
  /// on other texts. Several threads may call it.
  std::vector<float> embed(const std::vector<tokenizers::TokenId>& tokens);

 private:
  std::mutex mutex_;
  std::unique_ptr<program::Model> model_;
  tokenizers::Tokenizer tokenizer_;
  int64_t context_ = 0, width_ = 0;
  SentenceModules modules_;
};

}  // namespace paddle::llm
