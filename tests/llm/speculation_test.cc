// Guesses of tokens: what they are and how many they are.

#include "llm/speculation.h"

#include <gtest/gtest.h>

namespace paddle::llm {
namespace {

using Tokens = std::vector<tokenizers::TokenId>;

/// A step of each size makes its plan first, and is measured by the second.
void measure(Speculation& speculation, double one, double per_guess) {
  for (const int64_t guesses : {0, 1, 3, 7})
    for (int i = 0; i < 2; ++i)
      speculation.report(guesses, guesses, one + per_guess * static_cast<double>(guesses));
}

TEST(Speculation, GuessesWhatFollowedTheSameTokens) {
  Speculation speculation;
  measure(speculation, 1, 0.01);
  const Tokens text = {1, 2, 3, 10, 11, 12, 13, 14, 15, 16, 17, 18, 1, 2, 3};
  EXPECT_EQ(speculation.guess(text, 100), (Tokens{10, 11, 12, 13, 14, 15, 16}));
  EXPECT_EQ(speculation.guess(text, 5), (Tokens{10, 11, 12}));
  EXPECT_EQ(speculation.guess(text, 0), Tokens{});
  EXPECT_EQ(speculation.guess(Tokens{1, 2}, 100), Tokens{});
  EXPECT_EQ(speculation.guess(Tokens{1, 2, 3, 4, 5, 6}, 100), Tokens{});
}

TEST(Speculation, StopsWhereStepsTakeTooLong) {
  Speculation speculation;
  measure(speculation, 1, 1);  // as long as single steps
  const Tokens text = {1, 2, 3, 4, 5, 6, 7, 8, 1, 2, 3};
  EXPECT_EQ(speculation.guess(text, 100), Tokens{});
}

TEST(Speculation, StopsWhereGuessesAreWrong) {
  Speculation speculation;
  measure(speculation, 1, 0.1);
  const Tokens text = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 1, 2, 3};
  EXPECT_EQ(speculation.guess(text, 100).size(), 7u);
  for (int i = 0; i < 100; ++i) speculation.report(1, 0, 1.1);
  EXPECT_EQ(speculation.guess(text, 100), Tokens{});
  // Tried again later: the text may have changed.
  size_t most = 0;
  for (int i = 0; i < 40; ++i) most = std::max(most, speculation.guess(text, 100).size());
  EXPECT_GT(most, 0u);
}

}  // namespace
}  // namespace paddle::llm
