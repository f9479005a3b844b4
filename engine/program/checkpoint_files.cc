#include "program/checkpoint_files.h"

#include "base/text.h"

namespace paddle::program {

std::vector<CheckpointTensor> stored_weights(const ParameterStore& store) {
  std::vector<CheckpointTensor> out;
  for (const auto& [name, p] : store.parameters)
    out.push_back({name, store.master(name) ? "master/" + name : name});
  for (const auto& [name, value] : store.states)
    if (is_model_state(name)) out.push_back({name, name, store.sequence_starts.count(name) > 0});
  return out;
}

std::vector<CheckpointTensor> stored_optimizer(const ParameterStore& store) {
  std::vector<CheckpointTensor> out;
  for (const auto& [name, value] : store.states)
    if (!is_model_state(name) && !is_master(name) && !is_accumulated(name))
      out.push_back({name, name});
  for (const auto& [name, start] : store.sequence_starts)
    out.push_back({str(kSequencePrefix, name), name});
  return out;
}

}  // namespace paddle::program
