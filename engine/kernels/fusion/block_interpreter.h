#pragma once
// Interprets a fusion group block by block: each step's vector loop runs over a block that stays in
// the L1 cache, so memory is read and written once for the whole group.

#include "ops/core/fused.h"

namespace paddle::cpu {

/// Registered as a backend for fusion groups. Declines groups with operations that are neither
/// elementwise nor reductions, or with too many live values.
std::unique_ptr<Kernel> prepare_fused_group(const FusedRequest& request);

}  // namespace paddle::cpu
