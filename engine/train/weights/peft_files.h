#pragma once
// The adapters of a run in PEFT's files, under the names of the Hugging Face model that the run
// began with.

#include <string>

#include "program/parameter_store.h"
#include "train/weights/adapters.h"
#include "train/weights/initial_weights.h"

namespace paddle::train {

/// Writes them into the folder, where the initial weights are those of a Hugging Face folder, with
/// rules for their names. "" when they were written or the run began with other weights, else why
/// PEFT's files cannot hold these adapters.
std::string write_peft_files(const std::string& folder, const program::ParameterStore& store,
                             const Adapters& adapters, const InitialWeights& init);

}  // namespace paddle::train
