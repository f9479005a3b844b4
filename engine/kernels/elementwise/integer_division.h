#pragma once
// Division of integers, defined for all of them: division by zero yields 0, and the least number
// divided by -1 wraps around.

#include <cstdint>
#include <string_view>
#include <type_traits>

#include "kernels/elementwise/loops.h"

namespace paddle::cpu {

enum class IntegerQuotient : uint8_t {
  kTruncated,           ///< rounded towards zero
  kFloored,             ///< rounded towards minus infinity
  kTruncatedRemainder,  ///< has the sign of the dividend
  kFlooredRemainder,    ///< has the sign of the divisor
};

template <IntegerQuotient kKind>
struct IntegerDivision {
  template <class T>
  T operator()(T a, T b) const {
    constexpr bool kRemainder = kKind == IntegerQuotient::kTruncatedRemainder ||
                                kKind == IntegerQuotient::kFlooredRemainder;
    if (b == T(0)) return T(0);
    if constexpr (std::is_signed_v<T>) {
      if (b == T(-1))
        return kRemainder ? T(0) : static_cast<T>(uint64_t{0} - static_cast<uint64_t>(a));
      [[maybe_unused]] const bool between = a % b != 0 && (a < 0) != (b < 0);
      if constexpr (kKind == IntegerQuotient::kFloored) return static_cast<T>(a / b - between);
      if constexpr (kKind == IntegerQuotient::kFlooredRemainder)
        return static_cast<T>(a % b + (between ? b : T(0)));
    }
    return static_cast<T>(kRemainder ? a % b : a / b);
  }
};

/// Vector loops for int32 and int64 of divide, floor_divide, fmod and remainder; null for others.
Loop integer_division_loop(std::string_view name, DType compute);

}  // namespace paddle::cpu
