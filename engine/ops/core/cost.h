#pragma once
// FLOPs of calls, for reports. A multiply-add counts as two.

#include "ops/core/op.h"

namespace paddle {

/// By the operation's cost rule, or one per element of its results.
double call_flops(const Op& op, const Attrs& attrs, const std::vector<Dims>& operands,
                  const std::vector<Dims>& results);

/// The product of dims as a floating-point number, which cannot overflow.
double element_product(const Dims& dims);

}  // namespace paddle
