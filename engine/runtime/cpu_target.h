#pragma once
// The CPU of this machine as a target.

#include "ops/core/target.h"

namespace paddle::runtime {

/// Its architecture, the vector instructions that kernels may use (PADDLE_MAX_ISA limits them), and
/// the working set of batch tiling.
void describe_cpu(TargetInfo& target);

/// Whether this processor has instructions for products in a 16-bit type, which kernels may use.
bool has_products_in(DType low);

}  // namespace paddle::runtime
