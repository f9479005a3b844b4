#pragma once
// The perplexity of a text: how well a language model predicts each of its tokens.

#include <functional>
#include <span>

#include "llm/language_model.h"
#include "text/tokenizer.h"

namespace paddle::llm {

struct Perplexity {
  double value = 0;    ///< exp of the mean of -log p(token | tokens before it in the window)
  int64_t tokens = 0;  ///< that were predicted
};

/// Every token but the first is predicted once. The text is cut into windows of `window` tokens,
/// and each begins with the last token of the one before, which is not predicted again. Only one
/// window's logits are in memory. Window 0 is 512
/// tokens, or the context where that is less; kUsage if it is below 2 or above the context. Stops
/// early with what it has where `proceed` returns false. kData for fewer than two tokens.
Perplexity perplexity(LanguageModel& model, std::span<const tokenizers::TokenId> tokens,
                      int64_t window, const std::function<bool()>& proceed);

}  // namespace paddle::llm
