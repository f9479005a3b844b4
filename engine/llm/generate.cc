#include "llm/generate.h"

#include "base/error.h"
#include "llm/logits.h"

namespace paddle::llm {

namespace {

/// The logits of the last token, from what the cache holds of the text and the tokens after that.
std::span<const float> cached_logits(LanguageModel& model,
                                     std::span<const tokenizers::TokenId> tokens) {
  Runner& runner = *model.runner;
  const auto& cached = model.cached;
  size_t same = 0;
  while (same < cached.size() && same + 1 < tokens.size() && cached[same] == tokens[same]) ++same;
  runner.truncate(0, static_cast<int64_t>(same));
  model.cached.assign(tokens.begin(), tokens.begin() + static_cast<ptrdiff_t>(same));
  const float* logits = runner.append(0, tokens.subspan(same));
  model.cached.assign(tokens.begin(), tokens.end());
  return {logits, static_cast<size_t>(runner.words())};
}

/// Logits of the token after these. `whole` keeps them for models without a cache.
std::span<const float> next_logits(LanguageModel& model,
                                   std::span<const tokenizers::TokenId> tokens, Array& whole) {
  if (model.runner) return cached_logits(model, tokens);
  whole = padded_logits(model, tokens);
  const auto words = static_cast<size_t>(whole.shape[2]);
  return {whole.data<float>() + (tokens.size() - 1) * words, words};
}

}  // namespace

void check_prompt(int64_t context, const tokenizers::Tokenizer& tokenizer,
                  std::vector<tokenizers::TokenId>& tokens, const GenerateOptions& options) {
  options.check();
  if (tokens.empty() && tokenizer.beginning) tokens.push_back(*tokenizer.beginning);
  if (tokens.empty()) fail(ErrorCode::kUsage, "an empty prompt, and the model has no first token");
  if (static_cast<int64_t>(tokens.size()) > context)
    fail(ErrorCode::kUsage, "the prompt has ", tokens.size(), " tokens; the model's context is ",
         context);
}

std::string generate(LanguageModel& model, const tokenizers::Tokenizer& tokenizer,
                     std::vector<tokenizers::TokenId> tokens, const GenerateOptions& options,
                     const std::function<bool(const std::string&)>& emit) {
  check_prompt(model.context, tokenizer, tokens, options);
  Generation generation(tokenizer, std::move(tokens), options, model.end_tokens, model.context);
  std::string text;
  Array whole;
  while (generation.end() == Generation::End::kNone) {
    const std::string piece = generation.next(next_logits(model, generation.tokens(), whole));
    text += piece;
    if (!piece.empty() && !emit(piece)) break;
  }
  return text;
}

}  // namespace paddle::llm
