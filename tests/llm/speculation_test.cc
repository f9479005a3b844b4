// Drafts of tokens: what they are and how many they are.

#include "llm/speculation.h"

#include <gtest/gtest.h>

namespace paddle::llm {
namespace {

using Tokens = std::vector<tokenizers::TokenId>;
constexpr int64_t kRows = 256;

Tokens candidates(Speculation& speculation, const Tokens& text, int64_t most = 100) {
  const auto found = speculation.candidates(text, most);
  return {found.begin(), found.end()};
}

/// A step of each size makes its plan first, and is measured by the second.
StepTimes measured(double one, double per_row) {
  StepTimes times;
  for (int64_t rows = 1; rows <= kRows; rows *= 2)
    for (int i = 0; i < 2; ++i) times.report(rows, one + per_row * static_cast<double>(rows - 1));
  return times;
}

/// A text whose drafts are accepted `right` times and then wrong `wrong` times.
Speculation with_past(int right, int wrong) {
  Speculation out;
  for (int i = 0; i < right; ++i) out.report(1, 1);
  for (int i = 0; i < wrong; ++i) out.report(1, 0);
  return out;
}

const Tokens kRepeats = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 1, 2, 3};

std::vector<int64_t> chosen(const StepTimes& times, std::span<Speculation> texts,
                            int64_t most_rows = kRows) {
  std::vector<DraftOffer> offers;
  for (Speculation& text : texts) offers.push_back({&text, text.candidates(kRepeats, 100)});
  return choose_drafts(times, offers, most_rows);
}

TEST(Speculation, ProposesWhatFollowedTheSameTokens) {
  Speculation speculation;
  const Tokens text = {1, 2, 3, 10, 11, 12, 13, 14, 15, 16, 17, 18, 1, 2, 3};
  EXPECT_EQ(candidates(speculation, text), (Tokens{10, 11, 12, 13, 14, 15, 16}));
  EXPECT_EQ(candidates(speculation, text, 5), (Tokens{10, 11, 12, 13, 14}));
  EXPECT_EQ(candidates(speculation, text, 0), Tokens{});
  EXPECT_EQ(candidates(speculation, {1, 2}), Tokens{});
  EXPECT_EQ(candidates(speculation, {1, 2, 3, 4, 5, 6}), Tokens{});
}

TEST(Speculation, ChecksMoreWhereDraftsAreAccepted) {
  const StepTimes times = measured(1, 0.05);
  std::vector<Speculation> texts = {with_past(50, 0)};
  EXPECT_EQ(chosen(times, texts), std::vector<int64_t>{7});
  EXPECT_EQ(chosen(times, texts, 4), std::vector<int64_t>{3});
  // A step has as many rows as give the most tokens per second.
  texts = {with_past(0, 1)};
  const auto few = chosen(times, texts);
  EXPECT_GT(few[0], 0);
  EXPECT_LT(few[0], 7);
}

TEST(Speculation, StopsWhereStepsTakeTooLong) {
  std::vector<Speculation> texts = {with_past(50, 0)};
  EXPECT_EQ(chosen(measured(1, 1), texts), std::vector<int64_t>{0});
}

TEST(Speculation, MeasuresStepsBeforeItTrustsThem) {
  StepTimes times;
  std::vector<Speculation> texts(1);
  EXPECT_EQ(chosen(times, texts), std::vector<int64_t>{0});
  for (int i = 0; i < 2; ++i) times.report(1, 1);
  EXPECT_EQ(chosen(times, texts), std::vector<int64_t>{1});  // a step of two rows is tried
  EXPECT_EQ(times.seconds(2), 0);
  times.report(2, 9);
  EXPECT_EQ(times.seconds(2), 0);  // made its plan
  times.report(2, 1.5);
  EXPECT_EQ(times.seconds(2), 1.5);
}

TEST(Speculation, StopsWhereDraftsAreRejected) {
  const StepTimes times = measured(1, 0.1);
  std::vector<Speculation> texts = {with_past(0, 100)};
  EXPECT_EQ(chosen(times, texts), std::vector<int64_t>{0});
  // Tried again later, since the text may have changed, and more and more rarely.
  const auto calls_until_trial = [&] {
    int calls = 1;
    while (chosen(times, texts)[0] == 0) ++calls;
    for (int i = 0; i < 100; ++i) texts[0].report(1, 0);
    return calls;
  };
  const int first = calls_until_trial();
  EXPECT_GT(first, 30);
  EXPECT_GT(calls_until_trial(), first + 30);
}

TEST(Speculation, GivesRowsToTheTextsWhoseDraftsAreAccepted) {
  const StepTimes times = measured(1, 0.01);
  std::vector<Speculation> texts = {with_past(50, 0), with_past(0, 50), with_past(0, 0)};
  const auto counts = chosen(times, texts);
  EXPECT_EQ(counts[0], 7);
  EXPECT_EQ(counts[1], 0);
  // Three texts take a step of four rows: the fourth costs nothing.
  std::vector<Speculation> one = {with_past(20, 0), with_past(0, 50), with_past(0, 50)};
  EXPECT_EQ(chosen(measured(1, 1), one), (std::vector<int64_t>{1, 0, 0}));
}

TEST(Speculation, TextsWithoutDraftsKeepTheirRows) {
  const StepTimes times = measured(1, 0.01);
  Speculation text = with_past(50, 0);
  const DraftOffer offers[] = {{}, {&text, text.candidates(kRepeats, 100)}, {}};
  EXPECT_EQ(choose_drafts(times, offers, kRows), (std::vector<int64_t>{0, 7, 0}));
  EXPECT_EQ(choose_drafts(times, offers, 4), (std::vector<int64_t>{0, 1, 0}));
}

}  // namespace
}  // namespace paddle::llm
