#include "llm/generate.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "decoding/stop_text.h"
#include "llm/logits.h"
#include "tensor/random.h"

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

/// Logits of the token after these.
std::vector<double> next_logits(LanguageModel& model, std::span<const tokenizers::TokenId> tokens) {
  Array whole;
  std::span<const float> logits;
  if (model.runner) {
    logits = cached_logits(model, tokens);
  } else {
    whole = padded_logits(model, tokens);
    const auto words = static_cast<size_t>(whole.shape[2]);
    logits = {whole.data<float>() + (tokens.size() - 1) * words, words};
  }
  if (std::any_of(logits.begin(), logits.end(), [](float x) { return std::isnan(x); }))
    fail(ErrorCode::kModel, "the model's logits are NaN; its weights are not usable");
  return {logits.begin(), logits.end()};
}

}  // namespace

void check_prompt(const LanguageModel& model, const tokenizers::Tokenizer& tokenizer,
                  std::vector<tokenizers::TokenId>& tokens, const GenerateOptions& options) {
  options.sampling.check();
  if (options.length < 0)
    fail(ErrorCode::kUsage, "length is ", options.length, ", expected at least 0");
  const decoding::StopFilter checked(options.stops);
  if (tokens.empty() && tokenizer.beginning) tokens.push_back(*tokenizer.beginning);
  if (tokens.empty()) fail(ErrorCode::kUsage, "an empty prompt, and the model has no first token");
  if (static_cast<int64_t>(tokens.size()) > model.context)
    fail(ErrorCode::kUsage, "the prompt has ", tokens.size(), " tokens; the model's context is ",
         model.context);
}

std::string generate(LanguageModel& model, const tokenizers::Tokenizer& tokenizer,
                     std::vector<tokenizers::TokenId> tokens, const GenerateOptions& options,
                     const std::function<bool(const std::string&)>& emit) {
  check_prompt(model, tokenizer, tokens, options);
  const auto& sampling = options.sampling;
  decoding::StopFilter filter(options.stops);
  tokenizers::StreamDecoder stream(tokenizer);
  std::string text;
  const auto show = [&](const std::string& piece) {
    text += piece;
    return piece.empty() || emit(piece);
  };
  const Random random(options.seed, stream_of("generate"));
  for (int64_t i = 0; i < options.length && static_cast<int64_t>(tokens.size()) < model.context;
       ++i) {
    auto logits = next_logits(model, tokens);
    decoding::penalize_repetitions(logits, tokens, sampling.repetition_penalty);
    const auto token = static_cast<tokenizers::TokenId>(
        decoding::sample_token(logits, sampling, random.uniform(static_cast<uint64_t>(i))));
    if (std::find(model.end_tokens.begin(), model.end_tokens.end(), token) !=
            model.end_tokens.end() ||
        token == tokenizer.end)
      break;
    tokens.push_back(token);
    if (!tokenizer.token(token)) continue;  // vocabularies of weights are padded
    if (!show(filter.add(stream.add(token))) || filter.is_stopped()) return text;
  }
  show(filter.add(stream.finish()));
  show(filter.finish());
  return text;
}

}  // namespace paddle::llm
