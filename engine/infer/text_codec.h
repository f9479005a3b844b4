#pragma once
// Text to the ids that a model was trained on and back: by the vocabulary of a run, or by the
// tokenizer that it keeps.

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "program/model.h"
#include "text/tokenizer.h"

namespace paddle::infer {

class TextCodec {
 public:
  /// Of the field that is the model's input `input`. kUsage for a model without either.
  TextCodec(const program::Model& model, const std::string& input);

  /// Ids of a prompt. Special tokens in it are parsed. Without text, what a text begins with: the
  /// beginning or end token, a line break, or token 0. kData for characters that the vocabulary
  /// lacks.
  std::vector<int64_t> encode(const std::string& prompt) const;
  int64_t size() const;
  /// Whether the text ends with this token.
  bool is_end(int64_t token) const { return end_ && token == *end_; }

  /// The text of generated tokens: `begin` with the prompt's ids, `add` for each token, `finish`.
  void begin(const std::vector<int64_t>& prompt);
  std::string add(int64_t token);
  std::string finish();

 private:
  std::optional<data::Vocabulary> vocabulary_;
  data::TextTokenizerPtr tokenizer_;
  std::optional<int64_t> end_, beginning_;
  std::optional<tokenizers::StreamDecoder> decoder_;
};

}  // namespace paddle::infer
