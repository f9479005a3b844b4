#pragma once
// Whether functions are called alike, for comparisons of declarations.

#include <type_traits>

namespace {

/// Functions are called alike if their results and parameters are passed alike.
template <class A, class B>
struct Alike {
  static constexpr bool value = sizeof(A) == sizeof(B) &&
                                std::is_pointer_v<A> == std::is_pointer_v<B> &&
                                std::is_floating_point_v<A> == std::is_floating_point_v<B>;
};
template <class R, class... P, class S, class... Q>
struct Alike<R (*)(P...), S (*)(Q...)> {
  static constexpr bool value = [] {
    if constexpr (sizeof...(P) == sizeof...(Q))
      return Alike<R, S>::value && (Alike<P, Q>::value && ...);
    return false;
  }();
};

}  // namespace
