#pragma once
// The runtime's side of the passes: how they evaluate constants, and which operations its kernels
// can compute as a group.

#include "passes/passes.h"

namespace paddle::runtime {

/// Options for `passes::standard_passes` with this runtime's answers.
passes::PassOptions pass_options(bool fusion = true);

}  // namespace paddle::runtime
