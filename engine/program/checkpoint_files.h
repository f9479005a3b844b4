#pragma once
// The files of a checkpoint.

#include <string>
#include <vector>

#include "program/parameter_store.h"

namespace paddle::program {

/// Those whose sizes and checksums are kept.
inline constexpr const char* kCheckedFiles[] = {"config.yaml", "module.txt", "model.safetensors",
                                                "optimizer.safetensors"};

/// A tensor of a file.
struct CheckpointTensor {
  std::string name;    ///< in the file
  std::string source;  ///< the parameter or state of the store
  bool start = false;  ///< the initial value of a sequence state, not the current one
};

/// The tensors of model.safetensors: parameters, in full precision, and states of the model.
std::vector<CheckpointTensor> stored_weights(const ParameterStore& store);
/// Those of optimizer.safetensors: the other states that a checkpoint has, and the current values
/// of sequence states.
std::vector<CheckpointTensor> stored_optimizer(const ParameterStore& store);

}  // namespace paddle::program
