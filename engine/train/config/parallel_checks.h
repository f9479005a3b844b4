#pragma once
// Checks of a training config: settings that a layout of ranks excludes.

#include "config/diagnostics.h"
#include "train/config/run_config.h"

namespace paddle::train {

/// kConfig for each setting that the section `parallel:` of the config is not possible with.
void check_parallel(const RunConfig& config, config::Diagnostics& diagnostics);

}  // namespace paddle::train
