#pragma once
// `train.on_nonfinite`: what a run does after a loss or gradients that are not finite.

#include "config/diagnostics.h"
#include "config/schema.h"
#include "train/config/run_config.h"

namespace paddle::train {

/// Reads the key of the section `train:`; what it does not go with goes to `diagnostics`. The other
/// keys of the run that it depends on must have been read.
void read_nonfinite_policy(const config::Section& train, RunConfig& config,
                           config::Diagnostics& diagnostics);

}  // namespace paddle::train
