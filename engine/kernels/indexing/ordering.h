#pragma once
// The order of values in sorts: NaN comes last, and equals every other NaN.

#include <cstdint>
#include <type_traits>

namespace paddle::cpu {

template <class T>
bool nan_last_less(T a, T b) {
  if constexpr (std::is_integral_v<T>) {
    return a < b;
  } else {
    return a < b || (b != b && a == a);
  }
}

/// n elements, `stride` apart, to contiguous ones.
template <class T>
void gather_row(const T* x, int64_t stride, T* target, int64_t n) {
  for (int64_t i = 0; i < n; ++i) target[i] = x[i * stride];
}

}  // namespace paddle::cpu
