#pragma once
// Selection of the next token from logits: greedy, or at random by temperature, top-k, top-p
// (nucleus sampling: Holtzman et al., "The Curious Case of Neural Text Degeneration", 2020) and
// min-p.

#include <random>
#include <span>
#include <vector>

#include "decoding/search_options.h"

namespace paddle::decoding {

/// Orders NaN below all other scores.
float sort_key(float score);

/// The index of the largest score in each row of `vocabulary_size`; the first of equal ones.
Tokens argmax_tokens(std::span<const float> scores, int64_t vocabulary_size);

struct SamplingOptions {
  double temperature = 1;  ///< 0: greedy
  int64_t top_k = 0;       ///< 0: all tokens
  double top_p = 1;
  double min_p = 0;               ///< drops tokens below this share of the largest probability
  double repetition_penalty = 1;  ///< for `penalize_repetitions`

  /// kUsage with the name of the option that is out of its range.
  void check() const;
};

/// Divides the logits of the tokens in `text` by the penalty where they are positive, and
/// multiplies them where they are negative; once for each distinct token (Keskar et al., "CTRL",
/// 2019).
template <class Token>
void penalize_repetitions(std::span<double> logits, const std::vector<Token>& text,
                          double penalty) {
  if (penalty == 1) return;
  std::vector<bool> seen(logits.size());
  for (const Token token : text) {
    const auto t = static_cast<size_t>(token);
    if (t >= logits.size() || seen[t]) continue;
    seen[t] = true;
    logits[t] = logits[t] > 0 ? logits[t] / penalty : logits[t] * penalty;
  }
}

/// Samples a token from logits with a uniform random number in [0, 1): the temperature is applied
/// first, then top-k, top-p and min-p.
int64_t sample_token(std::span<const double> logits, const SamplingOptions& options, double random);

/// Top-p sampling with the arithmetic and the generator of ONNX Runtime's `Sampling` operator, so
/// that both draw the same tokens for a seed.
class TopPSampler {
 public:
  struct Options {
    float top_p = 0, filter_value = -1e20F;
    int64_t min_tokens_to_keep = 0;
    /// Keep a token while the probability of the more likely ones is at most `top_p`. Otherwise
    /// drop the least likely tokens while their probability is at most 1 - `top_p`.
    bool descending = false;
    uint32_t seed = 0;
  };
  explicit TopPSampler(const Options& options) : options_(options), generator_(options.seed) {}
  /// One token for each row; sets the `scores` of dropped tokens to the filter value.
  Tokens sample(std::span<float> scores, int64_t vocabulary_size);

 private:
  void filter(std::span<float> row) const;

  Options options_;
  std::default_random_engine generator_;
};

}  // namespace paddle::decoding
