#pragma once
// Runs float16 operations with their float32 kernels, which is several times faster than kernels
// that convert every element they read.

#include "ops/core/kernel.h"

namespace paddle::cpu {

/// The float32 kernel of `prepare` with conversions of float16 operands and results around it; null
/// if there is none. Operands must be contiguous. Constants are converted once unless the policy
/// says skip_prepack.
std::unique_ptr<Kernel> upcast_to_float32(const KernelRequest& request, PrepareFn prepare);

}  // namespace paddle::cpu
