#pragma once
// Casts of whole tensors that count what they lose.

#include <cstdint>

#include "tensor/tensor.h"

namespace paddle::convert {

struct CastLoss {
  int64_t values = 0;
  int64_t changed = 0;   ///< come back as another value, those out of range among them
  int64_t overflow = 0;  ///< finite values out of the new type's range
};

/// The array in another type, a part at a time, so that memory is that of the result.
Array cast_counting(const Array& array, DType to, CastLoss& loss);

}  // namespace paddle::convert
