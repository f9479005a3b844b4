#pragma once
// The CPU of this machine as a target.

#include "ops/core/target.h"

namespace paddle::runtime {

/// Its architecture, the vector instructions that kernels may use (PADDLE_MAX_ISA limits them), and
/// the working set of batch tiling.
void describe_cpu(TargetInfo& target);

}  // namespace paddle::runtime
