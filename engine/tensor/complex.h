#pragma once
// Complex element types in C++: their dtypes, and the visitor that includes them. Only kernels of
// operations that declare `dtypes: +complex` are instantiated for them.

#include <complex>

#include "tensor/dtype.h"

namespace paddle {

template <>
constexpr DType dtype_of<std::complex<float>>() {
  return DType::kC64;
}
template <>
constexpr DType dtype_of<std::complex<double>>() {
  return DType::kC128;
}

/// The type of the real and imaginary part; a type that is not complex itself.
inline DType real_type(DType d) {
  return d == DType::kC64 ? DType::kF32 : d == DType::kC128 ? DType::kF64 : d;
}
/// The complex type whose parts have the precision of `d`: 128 bits for f64, else 64.
inline DType complex_type(DType d) {
  return d == DType::kF64 || d == DType::kC128 ? DType::kC128 : DType::kC64;
}

template <class T>
inline constexpr bool kIsComplex = false;
template <class T>
inline constexpr bool kIsComplex<std::complex<T>> = true;

/// The type of the parts of T, or T itself.
template <class T>
struct RealPart {
  using type = T;
};
template <class T>
struct RealPart<std::complex<T>> {
  using type = T;
};

/// Calls `f(TypeTag<T>{})` with T = std::complex<float> or std::complex<double>.
template <class F>
decltype(auto) visit_complex(DType dtype, F&& f) {
  if (dtype == DType::kC64) return f(TypeTag<std::complex<float>>{});
  if (dtype == DType::kC128) return f(TypeTag<std::complex<double>>{});
  fail(ErrorCode::kUsage, "a complex type is needed, not ", text(dtype));
}

/// `visit_dtype` with the complex types.
template <class F>
decltype(auto) visit_number(DType dtype, F&& f) {
  return is_complex(dtype) ? visit_complex(dtype, f) : visit_dtype(dtype, f);
}

}  // namespace paddle
