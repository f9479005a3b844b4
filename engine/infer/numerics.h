#pragma once
// Counts over the elements of arrays that show where numbers go wrong: NaN, infinities, zeros and
// the largest magnitude.

#include <cstdint>

#include "tensor/tensor.h"

namespace paddle::infer {

struct Numerics {
  int64_t elements = 0, nan = 0, infinite = 0, zeros = 0;
  double largest = 0;  ///< magnitude of finite elements
};

/// Both parts of complex elements count as elements.
Numerics count_numerics(const Array& array);

}  // namespace paddle::infer
