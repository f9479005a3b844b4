#include "llm/embedder.h"

#include <algorithm>
#include <bit>

#include "base/error.h"
#include "base/files.h"
#include "llm/family.h"
#include "llm/logits.h"
#include "text/jinja/strings.h"
#include "text/load.h"

namespace paddle::llm {

bool is_encoder(const std::string& path, const std::string& family) {
  return find_family(open_model_files(path), family).has_embed;
}

Embedder::Embedder(const std::string& path, const ModelOptions& options)
    : tokenizer_(tokenizers::load_tokenizer(path)) {
  if (!is_encoder(path, options.family))
    fail(ErrorCode::kUsage, path, ": is not an encoder; its family has no function 'embed'");
  ModelOptions embed = options;
  embed.load.function = "embed";
  LanguageModel opened = open_language_model(path, embed);
  model_ = std::move(opened.model);
  context_ = opened.context;
  const Shape& shape = model_->declared_outputs().at(0).second.shape;
  const int64_t hidden_width = shape.back().constant().value_or(0);
  modules_ =
      is_directory(path) ? read_sentence_modules(path, hidden_width) : read_gguf_pooling(path);
  if (modules_.most_tokens > 0) context_ = std::min(context_, modules_.most_tokens);
  width_ = modules_.width(hidden_width);
}

std::vector<tokenizers::TokenId> Embedder::tokens(const std::string& text) const {
  std::string read = modules_.prompt + text;
  if (modules_.strips) read = jinja::strip(read, "", true, true);
  if (modules_.lower_case) read = unicode::lower(unicode::to_valid_utf8(read));
  auto out = tokenizer_.encode(read, {.special = true});
  if (static_cast<int64_t>(out.size()) > context_)
    fail(ErrorCode::kUsage, "the text has ", out.size(), " tokens; the model's context is ",
         context_);
  if (out.empty()) fail(ErrorCode::kUsage, "a text without tokens has no embedding");
  return out;
}

std::vector<float> Embedder::embed(const std::vector<tokenizers::TokenId>& tokens) {
  const std::lock_guard lock(mutex_);
  const auto count = static_cast<int64_t>(tokens.size());
  // A few lengths serve all texts, so that few plans do; the length of a text decides its own.
  const int64_t bin = std::max(
      kMinBin, std::min<int64_t>(static_cast<int64_t>(std::bit_ceil(tokens.size())), context_));
  Array input = Array::zeros(DType::kI64, {1, bin});
  std::copy(tokens.begin(), tokens.end(), input.data<int64_t>());
  const Array hidden =
      model_->run({input, Array::from<int64_t>({count}, {1})})[0].cast(DType::kF32).contiguous();
  return modules_.vector_of(hidden.data<float>(), count, hidden.shape.back());
}

}  // namespace paddle::llm
