#pragma once
// A race of two configurations: blocks of work of both alternate, so that what else the machine
// does affects both alike, and the race ends as soon as the outcome is clear.

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

enum class Verdict {
  kFaster,   ///< the interval lies above `worth`
  kSlower,   ///< the interval lies below zero
  kSame,     ///< the gain is smaller than `worth`, or cannot be told from noise
  kStopped,  ///< the time was up
};

struct RaceOptions {
  int min_rounds = 5, max_rounds = 24;
  double worth = 0.01;  ///< gains below this do not count
  /// A candidate that is slower by more than this in each of the first two rounds has lost.
  double hopeless = 0.1;
};

struct Race {
  Gain gain;
  int rounds = 0;
  Verdict verdict = Verdict::kStopped;
};

/// A block of work; returns its time divided by its amount.
using Block = std::function<double()>;

Race race(const Block& base, const Block& candidate, const RaceOptions& options,
          const std::function<bool()>& stop);

}  // namespace paddle::tune
