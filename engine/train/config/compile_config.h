#pragma once
// The section `compile:` of a training config.

#include "config/diagnostics.h"
#include "config/schema.h"
#include "train/config/run_config.h"

namespace paddle::train {

config::Schema compile_schema();
/// Sets `compile` and `kernel_table`; kConfig errors for files that cannot be read and for passes
/// that do not exist.
void read_compile(const config::Section& section, RunConfig& config,
                  config::Diagnostics& diagnostics);

}  // namespace paddle::train
