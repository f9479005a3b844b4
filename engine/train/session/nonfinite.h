#pragma once
// Values that are not finite, and the operation that made the first of them.

#include <cstdint>
#include <string>

#include "tensor/tensor.h"

namespace paddle::train {

/// How many elements of an array are not finite. Both parts of complex elements count.
struct NonFiniteCount {
  int64_t nan = 0, infinite = 0, elements = 0;
  bool any() const { return nan + infinite > 0; }
};

/// Zeros for arrays of integers.
NonFiniteCount count_nonfinite(const Array& array);

/// The operation that first made NaN or infinity of finite values.
struct NonFiniteOrigin {
  std::string operation, location;
  NonFiniteCount count;  ///< of its result
  /// Where an infinity became NaN later: the operation that shows it, or "".
  std::string seen_in, seen_at;
};

}  // namespace paddle::train
