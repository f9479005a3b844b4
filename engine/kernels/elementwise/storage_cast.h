#pragma once
// Casts from and to the types that are only stored: the 8-bit and 4-bit floats, the 2- and 4-bit
// integers, and complex numbers. Values pass one by one; speed is not the point here.

#include <memory>

#include "ops/kernel.h"

namespace paddle::cpu {

/// A cast where one of the types, or both, have no kernels. Rounds to nearest, ties to even. What a
/// float type cannot hold becomes infinity (e5m2), NaN (the "fnuz" kinds) or the largest value
/// (e4m3fn, e2m1), as in PyTorch; integers keep their low bits; a complex number gives its real
/// part. Sub-byte types are packed, first element in the low bits, and contiguous. Throws kUsage
/// for strings and for strided sub-byte operands.
std::unique_ptr<Kernel> prepare_storage_cast(const KernelRequest& request);

}  // namespace paddle::cpu
