#pragma once
// Rounding to int8 as the attributes of PaddlePaddle's kernels describe it. For the .cc files of
// rules.

#include <string_view>

#include "tensor/tensor.h"

namespace paddle::rules {

/// `quant_round_type` (0: halves to even, 1: away from zero), and the smallest and largest integer.
struct Int8Rounding {
  int64_t round_type;
  double max_bound, min_bound;
};

/// x, rounded and held within the bounds, int8. Throws kUsage, as `op`, for bounds outside of int8
/// and for another round type.
Tensor rounded_to_int8(std::string_view op, const Tensor& x, const Int8Rounding& rounding);
/// x * scale * max_bound, rounded and held within the bounds, int8. `scale` broadcasts to x.
Tensor rounded_to_int8(std::string_view op, const Tensor& x, const Tensor& scale,
                       const Int8Rounding& rounding);
Tensor rounded_to_int8(std::string_view op, const Tensor& x, double scale,
                       const Int8Rounding& rounding);

}  // namespace paddle::rules
