#pragma once
// A comparison of two configurations: blocks of work of both alternate, so that other load on the
// machine affects both equally, and it ends as soon as the result is clear.

#include <chrono>
#include <functional>
#include <vector>

#include "base/elapsed.h"

namespace paddle::tune {

/// The gain in throughput of one configuration over another: 0.05 is 5% more work in the same time.
/// `low` and `high` bound the 95% confidence interval.
struct Gain {
  double mean = 0, low = 0, high = 0;
};

/// Half-width of the 95% confidence interval of a mean in standard errors, for `n` samples
/// (Student's t with n - 1 degrees of freedom).
double t_quantile(int n);

/// The gain from paired times of the same work, at least 2 pairs: the mean of the logarithms of
/// their ratios.
Gain paired_gain(const std::vector<double>& base, const std::vector<double>& candidate);

enum class ComparisonResult {
  kFaster,   ///< the interval lies above `worth`
  kSlower,   ///< the interval lies below zero
  kSame,     ///< the gain is smaller than `worth`, or cannot be told from noise
  kStopped,  ///< the time was up
};

struct ComparisonOptions {
  int min_rounds = 5, max_rounds = 24;
  double worth = 0.01;  ///< gains below this do not count
  /// A candidate that is slower by more than this in each of the first two rounds has lost.
  double early_reject = 0.1;
};

struct Comparison {
  Gain gain;
  int rounds = 0;
  ComparisonResult outcome = ComparisonResult::kStopped;
};

/// A block of work; returns its time divided by its amount.
using Block = std::function<double()>;

Comparison compare(const Block& base, const Block& candidate, const ComparisonOptions& options,
                   const std::function<bool()>& stop);

}  // namespace paddle::tune
