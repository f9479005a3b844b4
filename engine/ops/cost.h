#pragma once
// Floating-point operations of calls, for reports: multiplications and additions counted apart.

#include "ops/op.h"

namespace paddle {

/// By the operation's cost rule, or one per element of its results.
double call_flops(const Op& op, const Attrs& attrs, const std::vector<Dims>& operands,
                  const std::vector<Dims>& results);

}  // namespace paddle
