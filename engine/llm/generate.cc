#include "llm/generate.h"

#include <algorithm>
#include <chrono>

#include "base/error.h"
#include "llm/logits.h"

namespace paddle::llm {

namespace {

/// Drops what the cache holds beyond a common start with the text; returns the length of that. At
/// least one token of the text is left to compute, and more where the caches cannot go back so far.
size_t keep_common_start(LanguageModel& model, std::span<const tokenizers::TokenId> tokens) {
  auto& cached = model.cached;
  size_t same = 0;
  while (same < cached.size() && same + 1 < tokens.size() && cached[same] == tokens[same]) ++same;
  same = static_cast<size_t>(model.runner->truncate(0, static_cast<int64_t>(same)));
  cached.resize(same);
  return same;
}

/// Logits of the token after these. `whole` keeps them for models without a cache.
std::span<const float> next_logits(LanguageModel& model,
                                   std::span<const tokenizers::TokenId> tokens, Array& whole) {
  if (model.runner) {
    const size_t same = keep_common_start(model, tokens);
    const float* logits = model.runner->append(0, tokens.subspan(same));
    model.cached.assign(tokens.begin(), tokens.end());
    return {logits, static_cast<size_t>(model.runner->vocab_size())};
  }
  whole = padded_logits(model, tokens);
  const auto vocab_size = static_cast<size_t>(whole.shape[2]);
  return {whole.data<float>() + (tokens.size() - 1) * vocab_size, vocab_size};
}

using TokenReport = std::function<void(const GeneratedToken&)>;

void report(const Generation& generation, const TokenReport& each) {
  if (each && generation.last()) each(*generation.last());
}

/// One step for the last token of the text and drafts for the next ones: chooses tokens as long as
/// the drafts are accepted. The logits are those of steps of one token, to the last bit.
std::string speculative_step(LanguageModel& model, Generation& generation,
                             const GenerateOptions& options, const TokenReport& each) {
  using Clock = std::chrono::steady_clock;
  const std::vector<tokenizers::TokenId> text = generation.tokens();
  const size_t same = keep_common_start(model, text);
  if (same + 1 < text.size()) {  // a prompt
    Array none;
    const std::string piece = generation.next(next_logits(model, text, none));
    report(generation, each);
    return piece;
  }
  const auto room = std::min(model.runner->context() - static_cast<int64_t>(text.size()),
                             options.length - generation.generated() - 1);
  const DraftOffer offer{&model.speculation,
                         model.speculation.candidates(text, std::max<int64_t>(0, room))};
  const auto drafts = offer.candidates.first(
      static_cast<size_t>(choose_drafts(model.step_times, {&offer, 1}, Runner::kMaxRows).front()));
  std::vector<tokenizers::TokenId> tokens = {text.back()};
  tokens.insert(tokens.end(), drafts.begin(), drafts.end());
  const auto count = static_cast<int64_t>(drafts.size());
  const auto begun = Clock::now();
  const StepPart part{0, tokens, count + 1};
  const float* logits = model.runner->step({&part, 1});
  const double seconds = std::chrono::duration<double>(Clock::now() - begun).count();
  model.cached = text;
  model.cached.insert(model.cached.end(), drafts.begin(), drafts.end());
  const auto vocab_size = static_cast<size_t>(model.runner->vocab_size());
  std::string out;
  int64_t right = 0;
  for (;; ++right) {
    out += generation.next({logits + static_cast<size_t>(right) * vocab_size, vocab_size});
    report(generation, each);
    if (generation.end() != Generation::End::kNone || right == count ||
        generation.tokens().back() != drafts[static_cast<size_t>(right)])
      break;
  }
  model.speculation.report(count, right);
  model.step_times.report(count + 1, seconds);
  return out;
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
                     const std::function<bool(const std::string&)>& emit, const TokenReport& each) {
  check_prompt(model.context, tokenizer, tokens, options);
  Generation generation(tokenizer, std::move(tokens), options, model.end_tokens, model.context);
  std::string text;
  Array whole;
  while (generation.end() == Generation::End::kNone) {
    std::string piece;
    if (model.runner && options.speculate) {
      piece = speculative_step(model, generation, options, each);
    } else {
      piece = generation.next(next_logits(model, generation.tokens(), whole));
      report(generation, each);
    }
    text += piece;
    if (!emit(piece)) break;
  }
  return text;
}

}  // namespace paddle::llm
