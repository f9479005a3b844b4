#pragma once
// Speculative decoding by n-grams: guesses the tokens that followed the same few tokens earlier in
// the text, so that one step can check several of them. Which tokens are chosen does not depend on
// the guesses; how many are guessed follows from how often guesses were right and from what steps
// of different sizes have taken, so that guessing costs no time where it does not help.

#include <array>
#include <cstdint>
#include <span>
#include <unordered_map>
#include <vector>

#include "text/tokenizer.h"

namespace paddle::llm {

class Speculation {
 public:
  /// Guesses for the tokens after this text, which is that of the last call with more at its end.
  /// At most `most`; none where nothing fits or steps with guesses have not paid.
  std::vector<tokenizers::TokenId> guess(std::span<const tokenizers::TokenId> text, int64_t most);
  /// The time of a step of one token and `guesses`, and how many of the guesses were right.
  void report(int64_t guesses, int64_t right, double seconds);

 private:
  static constexpr size_t kOrder = 3;                          ///< tokens that a guess follows from
  static constexpr std::array<int64_t, 3> kSizes = {1, 3, 7};  ///< guesses: steps of 2, 4, 8 rows
  static uint64_t key_of(std::span<const tokenizers::TokenId> tokens);
  static size_t index_of(int64_t guesses);  ///< of such steps in the arrays below

  std::unordered_map<uint64_t, size_t> after_;       ///< by the last tokens: where the text went on
  size_t noted_ = 0;                                 ///< tokens of the text that are in `after_`
  double right_ = 0.5;                               ///< moving share of guesses that were right
  std::array<double, kSizes.size() + 1> seconds_{};  ///< moving times of steps; 0: not measured
  std::array<bool, kSizes.size() + 1> has_plan_{};   ///< the first step of a size makes its plan
  int64_t pause_ = 0;                                ///< steps without guesses until the next trial
};

}  // namespace paddle::llm
