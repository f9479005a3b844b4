#pragma once
// Element types of normalization kernels.

#include <cstddef>
#include <type_traits>

#include "kernels/common/convert.h"
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

/// An optional vector of any float type in C: the vector itself, or a copy in `buffer`.
template <class C>
const C* as_compute_type(const void* source, DType dtype, int64_t n, std::byte* buffer) {
  if (!source) return nullptr;
  if (dtype == dtype_of<C>()) return static_cast<const C*>(source);
  convert_fn(dtype, dtype_of<C>())(source, 1, buffer, n);
  return reinterpret_cast<const C*>(buffer);
}

}  // namespace paddle::cpu
