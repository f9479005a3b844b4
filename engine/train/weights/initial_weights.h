#pragma once
// `init:`: a run that begins with weights from a file of any format that paddle-convert reads.

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "program/checkpoint.h"
#include "train/weights/packed_base.h"

namespace paddle::train {

struct InitialWeights {
  std::string file = {};    ///< "" for none
  std::string rules = {};   ///< of paddle-convert --map, or ""
  std::string fitted = {};  ///< fitted.json of the run whose vocabularies and scaling hold, or ""
  std::string optimizer = {};           ///< PaddlePaddle's .pdopt, or ""
  std::optional<int64_t> updates = {};  ///< that were made before the run
  std::vector<std::string> allow_missing = {}, allow_unused = {};  ///< patterns of names
};

/// Loads into parameters and model states that the store already has, packed ones from `base`;
/// kModel unless what is missing or unused is allowed. `warn` hears of contents that are left out,
/// and of rules that match nothing where names are missing or unused.
program::LoadReport load_initial_weights(const InitialWeights& init, const PackedBase* base,
                                         program::ParameterStore& store,
                                         const std::function<void(const std::string&)>& warn);

}  // namespace paddle::train
