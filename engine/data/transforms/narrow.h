#pragma once
// Numbers that go into a narrower type: whether they fit, and conversion that clamps.

#include <cmath>
#include <cstdint>
#include <limits>
#include <type_traits>
#include <utility>

#include "tensor/dtype.h"

namespace paddle::data {

/// Whether an integer type (or bool) holds this value; true for floating types.
inline bool fits(int64_t x, DType dtype) {
  if (is_float(dtype)) return true;
  return visit_dtype(dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    if constexpr (std::is_same_v<T, bool>)
      return x == 0 || x == 1;
    else if constexpr (std::is_integral_v<T>)
      return std::in_range<T>(x);
    else
      return true;
  });
}

/// Whether a constant of a config is a value of the type: an integer in its range for integer
/// types, anything for floating types.
inline bool is_value_of(double x, DType dtype) {
  if (is_float(dtype)) return true;
  if (dtype == DType::kU64 && x >= 0x1p63) return x < 0x1p64 && x == std::trunc(x);
  return std::abs(x) < 0x1p63 && x == std::trunc(x) && fits(static_cast<int64_t>(x), dtype);
}

/// `x` in type `To`: integers are clamped to the range of the type, fractions are cut off, and NaN
/// is 0.
template <class To, class From>
To clamped(From x) {
  using Limits = std::numeric_limits<To>;
  if constexpr (std::is_same_v<To, bool>) {
    return static_cast<double>(x) != 0;
  } else if constexpr (std::is_same_v<To, float16> || std::is_same_v<To, bfloat16>) {
    return To(static_cast<float>(x));
  } else if constexpr (!std::is_integral_v<To>) {
    return static_cast<To>(x);
  } else if constexpr (std::is_same_v<From, bool>) {
    return static_cast<To>(x);
  } else if constexpr (std::is_integral_v<From>) {
    if (std::in_range<To>(x)) return static_cast<To>(x);
    return std::cmp_less(x, 0) ? Limits::min() : Limits::max();
  } else {
    const double value = static_cast<double>(x);  // a conversion that does not fit is undefined
    if (std::isnan(value)) return 0;
    if (value <= static_cast<double>(Limits::min())) return Limits::min();
    if (value >= static_cast<double>(Limits::max())) return Limits::max();
    return static_cast<To>(value);
  }
}

}  // namespace paddle::data
