// Comparisons of synthetic times, where the result is known.

#include "tune/comparison.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "base/error.h"
#include "tune/search.h"

namespace paddle::tune {
namespace {

TEST(PairedGain, IntervalIsStudentsT) {
  // Ratios 1.1 and 1.3: logarithms 0.09531 and 0.26236, mean 0.17884, standard deviation 0.11812,
  // and t(1) = 12.706 gives 0.17884 ± 1.06127.
  const Gain gain = paired_gain({1.1, 2.6}, {1, 2});
  EXPECT_NEAR(gain.mean, std::exp(0.178837) - 1, 1e-5);
  EXPECT_NEAR(gain.low, std::exp(0.178837 - 1.061274) - 1, 1e-4);
  EXPECT_NEAR(gain.high, std::exp(0.178837 + 1.061274) - 1, 1e-3);
  // scipy.stats.t.ppf(0.975, n - 1)
  EXPECT_NEAR(t_quantile(6), 2.571, 1e-3);
  EXPECT_NEAR(t_quantile(31), 2.0423, 1e-3);
  EXPECT_NEAR(t_quantile(101), 1.98397, 1e-4);
}

/// Blocks of the given mean with 2% of noise.
Block noisy(double mean, uint64_t seed) {
  return [mean, generator = std::mt19937_64(seed),
          noise = std::normal_distribution<double>(0, 0.02)]() mutable {
    return mean * std::exp(noise(generator));
  };
}

TEST(Comparison, EndsAsSoonAsTheResultIsClear) {
  const auto never = [] { return false; };
  const Comparison faster = compare(noisy(1.2, 1), noisy(1.0, 2), {}, never);
  EXPECT_EQ(faster.outcome, ComparisonResult::kFaster);
  EXPECT_LE(faster.rounds, 8);
  EXPECT_LT(faster.gain.low, 0.2);
  EXPECT_GT(faster.gain.high, 0.2);
  const Comparison slower = compare(noisy(1.0, 3), noisy(1.2, 4), {}, never);
  EXPECT_EQ(slower.outcome, ComparisonResult::kSlower);
  EXPECT_LE(slower.rounds, 8);
}

TEST(Comparison, ClaimsNothingBelowNoise) {
  int claims = 0;
  for (uint64_t seed = 0; seed < 50; ++seed)
    claims += compare(noisy(1, 100 + seed), noisy(1, 200 + seed), {}, [] {
                return false;
              }).outcome == ComparisonResult::kFaster;
  // A false claim needs a gain of over 1%; the second measurement of a search removes most of them.
  EXPECT_LE(claims, 3);
}

TEST(Comparison, StopsWhenAsked) {
  int calls = 0;
  const Comparison stopped = compare(noisy(1, 1), noisy(1, 2), {}, [&] { return ++calls > 3; });
  EXPECT_EQ(stopped.outcome, ComparisonResult::kStopped);
  EXPECT_EQ(stopped.rounds, 3);
}

/// Settings with known speeds: "fast" takes 0.8 of the time, "unsafe" 0.5 but is objected to,
/// "lucky" helps only in the first comparison, "huge" does not fit.
class MadeUp final : public TuningTarget {
 public:
  std::string name() const override { return "made up"; }
  std::string kind() const override { return "training"; }
  std::vector<std::string> dimensions() const override { return {"a", "b"}; }
  Settings start() const override { return {{"a", "slow"}, {"b", "slow"}}; }
  std::vector<Change> candidates(const std::string& dimension, const Settings&,
                                 const Budget&) override {
    if (dimension == "a") return {{"a", "huge"}, {"a", "fast"}, {"a", "unsafe"}};
    return {{"b", "slower"}, {"b", "lucky"}};
  }
  std::unique_ptr<Runner> open(const Settings& settings) override {
    ++opened;
    if (settings.at("a") == "huge") fail(ErrorCode::kDevice, "does not fit");
    class Fixed final : public Runner {
     public:
      Fixed(double time, bool lucky) : time_(time), lucky_(lucky) {}
      double block(double) override {
        const double luck = lucky_ && ++blocks_ <= 6 ? 0.5 : 1;
        return time_ * luck * (1 + 0.001 * (blocks_ % 3));
      }

     private:
      double time_;
      bool lucky_;
      int blocks_ = 0;
    };
    const double a = settings.at("a") == "fast" ? 0.8 : settings.at("a") == "unsafe" ? 0.5 : 1;
    const double b = settings.at("b") == "slower" ? 2 : 1;
    return std::make_unique<Fixed>(a * b, settings.at("b") == "lucky");
  }
  std::optional<std::string> rejection_reason(const Settings&, const Change& change,
                                              const Budget&) override {
    if (change.value == "unsafe" && !can_compare) return std::nullopt;
    return change.value == "unsafe" ? "the loss moves" : "";
  }
  bool same_bits(const Settings&, const Settings&) override { return true; }
  std::string publish(const Change& change, const std::string&) override { return change.value; }
  int opened = 0;
  bool can_compare = true;  ///< whether there is time for objections
};

TEST(Search, TakesWhatIsConfirmedAndSaysWhyNot) {
  MadeUp subject;
  SearchOptions options;
  options.dimensions = subject.dimensions();
  const Result result = search(subject, options);
  EXPECT_TRUE(result.finished);
  EXPECT_EQ(result.best, (Settings{{"a", "fast"}, {"b", "slow"}}));
  ASSERT_EQ(result.trials.size(), 5u);
  // A first change of each dimension, then the others.
  EXPECT_EQ(result.trials[0].why, "does not fit");
  EXPECT_EQ(result.trials[1].outcome, ComparisonResult::kSlower);
  EXPECT_EQ(result.trials[1].rounds, 2);  // early_reject
  EXPECT_TRUE(result.trials[2].accepted);
  EXPECT_NEAR(result.trials[2].gain.mean, 0.25, 0.01);
  EXPECT_EQ(result.trials[3].why, "the loss moves");
  EXPECT_EQ(result.trials[4].why, "a second measurement did not confirm the gain");
  EXPECT_NEAR(result.total.gain.mean, 0.25, 0.01);
  EXPECT_TRUE(result.same_bits);
}

TEST(Search, KnownTrialsAreNotRepeated) {
  MadeUp first, second;
  SearchOptions options;
  options.dimensions = first.dimensions();
  options.known = search(first, options).trials;
  const Result again = search(second, options);
  EXPECT_EQ(again.best, (Settings{{"a", "fast"}, {"b", "slow"}}));
  EXPECT_EQ(second.opened, 0);  // one change, which was compared with the start
}

TEST(Search, WhatIsUndecidedIsTriedAgain) {
  MadeUp first, second;
  SearchOptions options;
  options.dimensions = first.dimensions();
  first.can_compare = false;
  const Result before = search(first, options);
  EXPECT_FALSE(before.finished);
  ASSERT_EQ(before.trials.size(), 5u);
  EXPECT_EQ(before.trials[3].outcome, ComparisonResult::kStopped);
  EXPECT_NE(before.trials[3].why.find("no time was left"), std::string::npos);
  options.known = before.trials;
  const Result after = search(second, options);
  EXPECT_TRUE(after.finished);
  EXPECT_EQ(second.opened, 2);  // the best so far and the undecided change
  ASSERT_EQ(after.trials.size(), 5u);
  EXPECT_EQ(after.trials[4].why, "the loss moves");
}

TEST(Search, WithoutTimeItSaysSo) {
  MadeUp subject;
  SearchOptions options;
  options.dimensions = subject.dimensions();
  options.time_limit = 0;
  try {
    search(subject, options);
    FAIL() << "no error";
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), ErrorCode::kUsage);
    EXPECT_NE(e.message().find("raise --time-limit"), std::string::npos);
  }
}

}  // namespace
}  // namespace paddle::tune
