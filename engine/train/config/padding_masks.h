#pragma once
// Masks of padded fields as inputs of models with recurrent layers.

#include "config/diagnostics.h"
#include "train/config/run_config.h"

namespace paddle::train {

/// Gives a model that is written in the config, has recurrent layers and takes a field of varying
/// length the input NAME_mask, unless it has it: its recurrent layers then stop at the end of each
/// sequence (lang/layers). A warning for a model in a file of its own, which is not changed.
void add_padding_masks(RunConfig& config, config::Diagnostics& diagnostics);

}  // namespace paddle::train
