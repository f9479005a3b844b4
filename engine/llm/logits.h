#pragma once
// Logits of a sequence of tokens.

#include <cstdint>
#include <span>

#include "llm/language_model.h"
#include "text/tokenizer.h"

namespace paddle::llm {

/// Texts are padded to a power of two of tokens, at least to these.
constexpr int64_t kMinBin = 16;

/// float32[1, n, vocabulary] with n at least the number of tokens: without a
/// cache they are padded to a power of two, or to the context, so that few plans are made;
/// attention is causal, so the padding changes nothing.
Array padded_logits(LanguageModel& model, std::span<const tokenizers::TokenId> tokens);

}  // namespace paddle::llm
