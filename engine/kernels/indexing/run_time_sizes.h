#pragma once
// Numbers that become sizes of tensors; for the kernels of all devices.

#include <cstdint>

#include "tensor/dim.h"

namespace paddle {

/// The shape [values..., 0] of the result of `run_time_sizes`. Throws kData if a size is negative
/// or the product of the sizes above 0 exceeds 2^56.
Dims checked_sizes(const int64_t* values, int64_t count);

}  // namespace paddle
