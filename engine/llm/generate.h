#pragma once
// Text generation with a language model and its tokenizer.

#include <functional>
#include <string>
#include <vector>

#include "llm/generation.h"
#include "llm/language_model.h"
#include "text/tokenizer.h"

namespace paddle::llm {

/// Checks the options, and that the prompt fits into the context: nothing is cut off (kUsage). An
/// empty prompt becomes the tokenizer's first token.
void check_prompt(int64_t context, const tokenizers::Tokenizer& tokenizer,
                  std::vector<tokenizers::TokenId>& tokens, const GenerateOptions& options);

/// Continues `tokens`, checked as by `check_prompt`, until an end token, a stop text, the length,
/// or the model's context; calls `emit` after each step with the text that is known since the last
/// one (which may be empty), and stops when it returns false. `each`, if given, is called with each
/// generated token. Returns the text. With a runner, what its first sequence holds of the text is
/// not computed again.
std::string generate(LanguageModel& model, const tokenizers::Tokenizer& tokenizer,
                     std::vector<tokenizers::TokenId> tokens, const GenerateOptions& options,
                     const std::function<bool(const std::string&)>& emit,
                     const std::function<void(const GeneratedToken&)>& each = {});

}  // namespace paddle::llm
