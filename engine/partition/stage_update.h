#pragma once
// The update of a pipeline's parameters: each rank of the axis updates what its stages own, and
// computes what concerns all, such as the norm of all gradients, from values that are gathered.

#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "ir/module.h"

namespace paddle::partition {

struct StageUpdateOptions {
  /// Position on the axis of the rank that owns each parameter and state; those that are missing
  /// are the same on all ranks.
  std::map<std::string, int> owners;
  /// Positions of further ranks that have a copy of a parameter or state.
  std::map<std::string, std::set<int>> copies;
  std::vector<int64_t> group;  ///< ranks of the run along the axis
  int position = 0;            ///< of this rank in it
};

/// This rank's part of the update function. Dims must be constants.
std::unique_ptr<ir::Function> stage_update(const ir::Function& update,
                                           const StageUpdateOptions& options);

}  // namespace paddle::partition
