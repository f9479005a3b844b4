#include "decoding/sampling.h"

#include <cmath>
#include <map>
#include <set>

#include <gtest/gtest.h>

#include "base/error.h"

namespace paddle::decoding {
namespace {

const std::vector<double> kLogits = {1.0, 3.0, 2.0, -4.0, 2.5};

SamplingOptions with(double temperature, int64_t top_k = 0, double top_p = 1) {
  return {.temperature = temperature, .top_k = top_k, .top_p = top_p};
}

/// Relative frequencies of the tokens sampled on a fine grid of random numbers.
std::map<int64_t, double> shares(const SamplingOptions& options) {
  constexpr int kDraws = 20000;
  std::map<int64_t, double> out;
  for (int i = 0; i < kDraws; ++i)
    out[sample_token(kLogits, options, (i + 0.5) / kDraws)] += 1.0 / kDraws;
  return out;
}

double softmax(int64_t token, double temperature, const std::set<int64_t>& among) {
  double total = 0;
  for (const int64_t t : among) total += std::exp(kLogits[static_cast<size_t>(t)] / temperature);
  return std::exp(kLogits[static_cast<size_t>(token)] / temperature) / total;
}

void expect_shares(const SamplingOptions& options, const std::set<int64_t>& tokens) {
  const auto drawn = shares(options);
  ASSERT_EQ(drawn.size(), tokens.size());
  for (const auto& [token, share] : drawn) {
    ASSERT_TRUE(tokens.contains(token)) << token;
    EXPECT_NEAR(share, softmax(token, options.temperature, tokens), 2e-4) << token;
  }
}

TEST(SampleToken, TemperatureZeroIsGreedy) {
  for (const double random : {0.0, 0.3, 0.999})
    EXPECT_EQ(sample_token(kLogits, with(0), random), 1);
  EXPECT_EQ(sample_token(std::vector<double>{2, 2, 2}, with(0), 0.9), 0);  // the first of equals
}

TEST(SampleToken, FollowsSoftmaxWithTemperature) {
  for (const double temperature : {1.0, 2.0, 5.0})
    expect_shares(with(temperature), {0, 1, 2, 3, 4});
  EXPECT_EQ(shares(with(1e-6)).size(), 1u);
}

TEST(SampleToken, TopKKeepsTheMostLikely) {
  expect_shares(with(1, 1), {1});
  expect_shares(with(1, 3), {1, 4, 2});
  expect_shares(with(1, 99), {0, 1, 2, 3, 4});
}

TEST(SampleToken, TopPKeepsTheSmallestSufficientSet) {
  // Probabilities in order: 0.467 (1), 0.283 (4), 0.172 (2), 0.063 (0), 0.0004 (3).
  expect_shares(with(1, 0, 0.4), {1});
  expect_shares(with(1, 0, 0.5), {1, 4});
  expect_shares(with(1, 0, 0.9), {1, 4, 2});
  expect_shares(with(1, 0, 1), {0, 1, 2, 3, 4});
  expect_shares(with(1, 2, 0.9), {1, 4});
}

TEST(SampleToken, MinPKeepsThoseWithAShareOfTheLargest) {
  // Relative to token 1: exp(-0.5) = 0.607 (4), exp(-1) = 0.368 (2), exp(-2) = 0.135 (0).
  SamplingOptions options;
  options.min_p = 0.5;
  expect_shares(options, {1, 4});
  options.min_p = 0.36;
  expect_shares(options, {1, 4, 2});
  options.min_p = 0.37;
  expect_shares(options, {1, 4});
  options.min_p = 1;
  expect_shares(options, {1});
  // Temperature 2 comes first: exp(-0.25) = 0.779, exp(-0.5) = 0.607, exp(-1) = 0.368.
  options.temperature = 2;
  options.min_p = 0.5;
  expect_shares(options, {1, 4, 2});
  options.top_k = 2;
  expect_shares(options, {1, 4});
}

TEST(SamplingOptions, AreRejectedOutOfTheirRange) {
  const auto message = [](const SamplingOptions& options) -> std::string {
    try {
      options.check();
    } catch (const Error& e) {
      EXPECT_EQ(e.code(), ErrorCode::kUsage);
      return e.message();
    }
    return "accepted";
  };
  EXPECT_EQ(message({}), "accepted");
  EXPECT_EQ(message({.min_p = 1.5}), "min-p is 1.5, expected 0 to 1");
  EXPECT_EQ(message({.min_p = std::nan("")}), "min-p is nan, expected 0 to 1");
  EXPECT_EQ(message({.repetition_penalty = 0}),
            "repetition-penalty is 0, expected a finite number above 0");
  EXPECT_EQ(message({.top_p = 0}), "top-p is 0, expected above 0 and at most 1");
}

TEST(PenalizeRepetitions, OnceForEachTokenOfTheText) {
  std::vector<double> logits = {1, 3, 0, -4, 2.5};
  penalize_repetitions(logits, std::vector<int64_t>{3, 1, 1, 2, 3, 99}, 2);
  EXPECT_EQ(logits, (std::vector<double>{1, 1.5, 0, -8, 2.5}));
  penalize_repetitions(logits, std::vector<int32_t>{4}, 1);
  EXPECT_EQ(logits[4], 2.5);
}

TEST(SampleToken, LargeLogitsDoNotOverflow) {
  const std::vector<double> large = {1e6, 1e6 - 1, -1e6};
  EXPECT_EQ(sample_token(large, with(1), 0.1), 0);
  EXPECT_EQ(sample_token(large, with(1), 0.999999), 1);
}

}  // namespace
}  // namespace paddle::decoding
