#pragma once
// What the CPU of this machine says about itself as a target.

#include "ops/core/target.h"

namespace paddle::runtime {

/// Its architecture, the vector instructions that kernels may use (PADDLE_MAX_ISA limits them), and
/// the working set of batch tiling.
void describe_cpu(TargetInfo& target);

}  // namespace paddle::runtime
