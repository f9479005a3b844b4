#pragma once
// A group of elementwise operations as one kernel: block by block, each step's loop runs over a
// block that stays in the first-level cache, so memory is read and written once for the group.

#include "ops/fused.h"

namespace paddle::cpu {

/// Registered as the backend for groups. Declines groups with an operation that is no map over
/// elements, or too many values alive at once.
std::unique_ptr<Kernel> prepare_fused_group(const FusedRequest& request);

}  // namespace paddle::cpu
