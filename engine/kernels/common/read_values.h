#pragma once
// Small operands as vectors, for kernels that are not loops over elements.

#include <vector>

#include "kernels/common/convert.h"
#include "ops/core/kernel.h"

namespace paddle::cpu {

/// The elements of a contiguous operand, converted to T.
template <class T>
std::vector<T> values_of(const Layout& layout, const void* data) {
  std::vector<T> out(static_cast<size_t>(layout.size()));
  if (!out.empty())
    convert_fn(layout.dtype, dtype_of<T>())(data, 1, out.data(), static_cast<int64_t>(out.size()));
  return out;
}

}  // namespace paddle::cpu
