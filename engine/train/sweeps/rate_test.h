#pragma once
// The learning-rate range test: a short run whose rate grows from step to step shows from which
// rate on the loss falls, and from which one training diverges (Smith, "Cyclical Learning Rates for
// Training Neural Networks").

#include <string>
#include <vector>

#include "train/runs/run_index.h"

namespace paddle::train {

struct RateTest {
  std::vector<RateAt> steps;     ///< with the losses as logged
  std::vector<double> smoothed;  ///< running means of the losses
  double steepest = 0;           ///< rate at which the smoothed loss falls fastest
  double lowest = 0;             ///< rate at which the smoothed loss is lowest
  double diverges = 0;           ///< rate from which it is far above its lowest value; 0: none
  /// A rate to train with: the steepest, but at most a tenth of the one with the lowest loss.
  double suggested = 0;
};

/// The factor of the rate from step to step that takes `steps` steps from `low` to `high`.
double rate_factor(double low, double high, int64_t steps);
/// kData for fewer than 10 steps with finite losses, and where the loss never falls.
RateTest analyze_rates(std::vector<RateAt> steps);
/// Columns step, learning_rate, loss, smoothed.
std::string rates_csv(const RateTest& test);
/// HTML without other files.
std::string rates_page(const std::string& title, const RateTest& test);

}  // namespace paddle::train
