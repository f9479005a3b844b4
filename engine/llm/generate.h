#pragma once
// Text generation with a language model and its tokenizer.

#include <functional>
#include <string>

#include "decoding/sampling.h"
#include "llm/language_model.h"
#include "text/tokenizer.h"

namespace paddle::llm {

struct GenerateOptions {
  int64_t length = 200;  ///< tokens to add at most
  decoding::SamplingOptions sampling;
  uint64_t seed = 0;
};

/// Continues `tokens` until an end token, the length, or the model's context; calls `emit` with
/// each piece of text and stops when it returns false. Returns the text. kUsage if the tokens do
/// not fit into the context: nothing is cut off.
///
/// Every token is computed from the whole text, padded to a power of two so that few plans are
/// made; attention is causal, so the padding changes nothing.
std::string generate(LanguageModel& model, const tokenizers::Tokenizer& tokenizer,
                     std::vector<tokenizers::TokenId> tokens, const GenerateOptions& options,
                     const std::function<bool(const std::string&)>& emit);

}  // namespace paddle::llm
