#include "infer/text_codec.h"

#include <algorithm>

#include "base/error.h"
#include "text/token_file.h"

namespace paddle::infer {

TextCodec::TextCodec(const program::Model& model, const std::string& input) {
  const program::ModelMetadata& metadata = model.metadata();
  if (const data::Fitted* fitted = data::find_fitted(metadata.fitted, input))
    tokenizer_ = fitted->tokenizer;
  if (!tokenizer_) {
    vocabulary_ = metadata.vocabulary;
    if (!vocabulary_)
      fail(ErrorCode::kUsage, "'", model.name(),
           "' has no vocabulary and no tokenizer; it generates no text");
    return;
  }
  end_ = tokenizers::end_of_document(tokenizer_->tokenizer());
  // Instructions were trained after the beginning token; a chat template writes its own.
  const config::Node* data = metadata.config ? metadata.config->find("data") : nullptr;
  const config::Node* train = data ? data->find("train") : nullptr;
  const config::Node* prompt = train ? train->find("prompt") : nullptr;
  if (prompt && !prompt->text.empty()) beginning_ = tokenizer_->tokenizer().beginning;
}

std::vector<int64_t> TextCodec::encode(const std::string& prompt) const {
  if (!tokenizer_) {
    std::vector<int64_t> ids = vocabulary_->encode(prompt);
    if (ids.empty()) ids.push_back(vocabulary_->find("\n").value_or(0));
    return ids;
  }
  std::vector<int64_t> ids;
  if (beginning_) ids.push_back(*beginning_);
  for (const tokenizers::TokenId id :
       tokenizer_->tokenizer().encode(prompt, {.parse_special = true}))
    ids.push_back(id);
  if (ids.empty()) {
    const auto own = tokenizer_->tokenizer().beginning;
    ids.push_back(own ? *own : end_.value_or(0));
  }
  return ids;
}

int64_t TextCodec::size() const { return tokenizer_ ? tokenizer_->size() : vocabulary_->size(); }

void TextCodec::begin(const std::vector<int64_t>& prompt) {
  if (!tokenizer_) return;
  decoder_.emplace(tokenizer_->tokenizer());
  // The first token of a text is decoded differently, so that the end of the prompt goes first.
  constexpr size_t kContext = 8;
  for (size_t i = prompt.size() - std::min(prompt.size(), kContext); i < prompt.size(); ++i)
    decoder_->add(static_cast<tokenizers::TokenId>(prompt[i]));
  decoder_->finish();
}

std::string TextCodec::add(int64_t token) {
  return tokenizer_ ? decoder_->add(static_cast<tokenizers::TokenId>(token))
                    : vocabulary_->token(token);
}

std::string TextCodec::finish() { return tokenizer_ ? decoder_->finish() : std::string(); }

}  // namespace paddle::infer
