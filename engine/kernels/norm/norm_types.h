#pragma once
// Element types of normalization kernels.

#include <type_traits>

#include "ops/core/kernel.h"

namespace paddle::cpu {

/// 16-bit floats are computed in f32.
template <class T>
using Compute = std::conditional_t<std::is_same_v<T, double>, double, float>;

/// The dtype of an optional operand, or `otherwise`.
inline DType dtype_or(const KernelRequest& request, size_t operand, DType otherwise) {
  return operand < request.operands.size() && request.operands[operand].present
             ? request.operands[operand].dtype
             : otherwise;
}

}  // namespace paddle::cpu
