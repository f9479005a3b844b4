#pragma once
// The values that recomputation drops, for those who run the forward and the backward pass as
// functions of their own: stages of a pipeline.

#include <unordered_set>

#include "compiler/passes/schedule/recompute.h"

namespace paddle::passes {

struct DroppedValues {
  std::unordered_set<const ir::Value*> values;
  int layers = 0;  ///< that have been found
};

/// The values that `recompute` drops for the backward pass of a training step, whose first result
/// is the loss.
DroppedValues dropped_values(ir::Function& function, const RecomputeOptions& options);

}  // namespace paddle::passes
