#pragma once
// A training run as the subject of tuning: threads, loader, precision, batch, and what the compiler
// and the kernels do. Steps are those of the run, with data from its loader.

#include "tune/target.h"

namespace paddle::tune {

struct TrainingOptions {
  std::string config;
  std::vector<std::string> overrides;
  double loss_tolerance = 0.02;  ///< relative, of the mean loss of steps 41 to 50
};

/// kConfig if the config does not read.
std::unique_ptr<TuningTarget> training_target(TrainingOptions options);

}  // namespace paddle::tune
