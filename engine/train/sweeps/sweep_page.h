#pragma once
// The page of a search over settings: a table of its trials, their curves, and the metric against
// each numeric setting.

#include <optional>
#include <string>
#include <vector>

#include "train/sweeps/sweep.h"

namespace paddle::train {

struct SweptRun {
  Trial trial;
  std::string folder, status;
  std::optional<double> value;  ///< of the metric, at its last evaluation
  std::optional<double>
      first;         ///< after the first round, when all trials were trained equally long
  double share = 1;  ///< of the config's steps that it was trained for
};

/// HTML without other files. `runs`: the best one first.
std::string sweep_page(const std::string& title, const std::string& metric,
                       const std::vector<SweptRun>& runs);

}  // namespace paddle::train
