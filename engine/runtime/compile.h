#pragma once
// The runtime's side of the passes: how they evaluate constants, and which operations its kernels
// can compute as a group.

#include "passes/passes.h"

namespace paddle::runtime {

/// Options for `passes::standard_passes` with this runtime's answers. `exact`: only what gives the
/// bits of the operations one by one; a group keeps values between 16-bit operations in float32.
passes::PassOptions pass_options(bool fusion = true, bool exact = false);

}  // namespace paddle::runtime
