#pragma once
// Rules that adjust the scores of the next token before one is selected: penalties, masks,
// temperature, repeated n-grams and timestamps.

#include <algorithm>
#include <span>

#include "decoding/search_options.h"

namespace paddle::decoding {

/// Adjusts `scores` [rows, vocabulary] of the token after each sequence; the sequences have equal
/// lengths, and `step` counts generated tokens from 0. Forbidden tokens get the lowest float.
void process_logits(const SearchOptions& options, const std::vector<Tokens>& sequences,
                    int64_t step, std::span<float> scores);

/// Calls `callback(token)` for each token that would repeat an n-gram of the sequence.
template <class Token, class Callback>
void for_each_repeated_ngram_token(std::span<const Token> sequence, int64_t n,
                                   Callback&& callback) {
  const auto size = static_cast<int64_t>(sequence.size());
  if (n > size) return;
  const auto prefix = sequence.end() - (n - 1);
  for (auto it = sequence.begin(); sequence.end() - it >= n; ++it)
    if (std::equal(prefix, sequence.end(), it)) callback(it[n - 1]);
}

}  // namespace paddle::decoding
