#pragma once
// Operations on float16 by the kernels that they have for float32, which are several times faster
// than what reads every element in its own type.

#include "ops/kernel.h"

namespace paddle::cpu {

/// The kernel that `prepare` gives for operands and results of float32 in the place of float16,
/// with conversions around it; null if it gives none. Operands must be contiguous. Constants are
/// converted once, unless few runs are expected.
std::unique_ptr<Kernel> upcast_to_float32(const KernelRequest& request, PrepareFn prepare);

}  // namespace paddle::cpu
