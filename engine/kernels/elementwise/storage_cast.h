#pragma once
// Casts from and to storage-only dtypes: 8-bit and 4-bit floats, 2- and 4-bit integers, and complex
// numbers. Converts one value at a time; speed does not matter here.

#include <memory>

#include "ops/core/kernel.h"

namespace paddle::cpu {

/// A cast where one or both dtypes have no kernels. Rounds to nearest, ties to even. Values out of
/// range become infinity (e5m2), NaN (the "fnuz" kinds) or the largest value (e4m3fn, e2m1), as in
/// PyTorch. Integers keep their low bits, complex numbers their real part. Sub-byte dtypes are
/// packed, first element in the low bits, and contiguous. Throws kUsage for strings and for strided
/// sub-byte operands.
std::unique_ptr<Kernel> prepare_storage_cast(const KernelRequest& request);

}  // namespace paddle::cpu
