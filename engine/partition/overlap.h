#pragma once
// Exchanges of sharded weights, states and gradients in parallel with the computation.

#include "ir/module.h"

namespace paddle::partition {

/// Divides gathers and reduce-scatters of a local function into their beginnings and ends.
///
/// A gather of a parameter begins when the gather before it has ended, so that the weights of a
/// layer travel while the layer before it is computed. Any other exchange begins where it is and
/// ends before the next one or before its result is read, so that at most one gradient waits.
/// Where exchanges begin follows only from their order, which is the same on all ranks.
void overlap_exchanges(ir::Function& function);

}  // namespace paddle::partition
