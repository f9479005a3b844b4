#pragma once
// The table of element types, their properties, and the promotion rule. Kernels exist for bool,
// integers of 8 to 64 bits, f16, bf16, f32 and f64; the other types can be stored and cast.

#include <bit>
#include <cmath>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"

namespace paddle {

enum class DType : uint8_t {
  kBool,
  kI8,
  kI16,
  kI32,
  kI64,
  kU8,
  kU16,
  kU32,
  kU64,
  kI2,
  kU2,
  kI4,
  kU4,
  kF16,
  kBF16,
  kF32,
  kF64,
  kC64,
  kC128,
  kF8E4M3FN,
  kF8E5M2,
  kF8E4M3FNUZ,
  kF8E5M2FNUZ,
  kF8E8M0,
  kF4E2M1,
  kString,
};
inline constexpr int kDTypeCount = static_cast<int>(DType::kString) + 1;

enum class DTypeKind : uint8_t { kBool, kSigned, kUnsigned, kFloat, kComplex, kString };

struct DTypeInfo {
  std::string_view name;  ///< "float32"
  int bits;               ///< per element; 0 for string
  DTypeKind kind;
  bool has_kernels;  ///< false: storage and cast only
};

const DTypeInfo& info(DType dtype);
std::string text(DType dtype);
/// Accepts the table's names and the usual short ones (f32, fp32, float, half, double, int, long,
/// …).
std::optional<DType> parse_dtype(std::string_view name);
std::vector<std::string> dtype_names();

inline bool is_bool(DType d) { return d == DType::kBool; }
inline bool is_float(DType d) { return info(d).kind == DTypeKind::kFloat; }
inline bool is_complex(DType d) { return info(d).kind == DTypeKind::kComplex; }
inline bool is_integer(DType d) {
  return info(d).kind == DTypeKind::kSigned || info(d).kind == DTypeKind::kUnsigned;
}
/// Floating or complex: a gradient can flow through values of this type.
inline bool is_differentiable(DType d) { return is_float(d) || is_complex(d); }
/// Whole bytes of one element; sub-byte types count as 1 (see storage_bytes).
inline int64_t item_size(DType d) { return info(d).bits <= 8 ? 1 : info(d).bits / 8; }
/// Bytes of `count` contiguous elements; sub-byte types are packed.
int64_t storage_bytes(DType d, int64_t count);

/// The common type of two tensors, commutative and associative over kinds: bool < integers <
/// floats < complex; a float wins over any integer; u64 with a signed integer is f32;
/// f16 with bf16 is f32.
DType promote(DType a, DType b);
/// The same when `weak` comes from a number: its kind may lift, its width never does.
DType promote_weak(DType tensor, DType weak);

// ---- element types without a C++ equivalent -----------------------------------------------------

namespace float_detail {
float half_to_float(uint16_t bits);
uint16_t float_to_half(float value);
inline uint16_t float_to_bfloat16(float value) {
  uint32_t bits = std::bit_cast<uint32_t>(value);
  if ((bits & 0x7fffffffu) > 0x7f800000u) return static_cast<uint16_t>((bits >> 16) | 0x40);
  bits += 0x7fffu + ((bits >> 16) & 1);
  return static_cast<uint16_t>(bits >> 16);
}
}  // namespace float_detail

struct float16 {
  uint16_t bits = 0;
  float16() = default;
  float16(float value) : bits(float_detail::float_to_half(value)) {}
  operator float() const { return float_detail::half_to_float(bits); }
};

struct bfloat16 {
  uint16_t bits = 0;
  bfloat16() = default;
  bfloat16(float value) : bits(float_detail::float_to_bfloat16(value)) {}
  operator float() const { return std::bit_cast<float>(static_cast<uint32_t>(bits) << 16); }
};

template <class T>
struct TypeTag {
  using type = T;
};

template <class T>
constexpr DType dtype_of();
template <>
constexpr DType dtype_of<bool>() {
  return DType::kBool;
}
template <>
constexpr DType dtype_of<int8_t>() {
  return DType::kI8;
}
template <>
constexpr DType dtype_of<int16_t>() {
  return DType::kI16;
}
template <>
constexpr DType dtype_of<int32_t>() {
  return DType::kI32;
}
template <>
constexpr DType dtype_of<int64_t>() {
  return DType::kI64;
}
template <>
constexpr DType dtype_of<uint8_t>() {
  return DType::kU8;
}
template <>
constexpr DType dtype_of<uint16_t>() {
  return DType::kU16;
}
template <>
constexpr DType dtype_of<uint32_t>() {
  return DType::kU32;
}
template <>
constexpr DType dtype_of<uint64_t>() {
  return DType::kU64;
}
template <>
constexpr DType dtype_of<float16>() {
  return DType::kF16;
}
template <>
constexpr DType dtype_of<bfloat16>() {
  return DType::kBF16;
}
template <>
constexpr DType dtype_of<float>() {
  return DType::kF32;
}
template <>
constexpr DType dtype_of<double>() {
  return DType::kF64;
}

/// Calls `f(TypeTag<T>{})` with the C++ type of a dtype that has kernels.
template <class F>
decltype(auto) visit_dtype(DType dtype, F&& f) {
  switch (dtype) {
    case DType::kBool:
      return f(TypeTag<bool>{});
    case DType::kI8:
      return f(TypeTag<int8_t>{});
    case DType::kI16:
      return f(TypeTag<int16_t>{});
    case DType::kI32:
      return f(TypeTag<int32_t>{});
    case DType::kI64:
      return f(TypeTag<int64_t>{});
    case DType::kU8:
      return f(TypeTag<uint8_t>{});
    case DType::kU16:
      return f(TypeTag<uint16_t>{});
    case DType::kU32:
      return f(TypeTag<uint32_t>{});
    case DType::kU64:
      return f(TypeTag<uint64_t>{});
    case DType::kF16:
      return f(TypeTag<float16>{});
    case DType::kBF16:
      return f(TypeTag<bfloat16>{});
    case DType::kF32:
      return f(TypeTag<float>{});
    case DType::kF64:
      return f(TypeTag<double>{});
    default:
      fail(ErrorCode::kUsage, "no kernels for ", text(dtype));
  }
}

/// The same over f16, bf16, f32 and f64 only.
template <class F>
decltype(auto) visit_float(DType dtype, F&& f) {
  switch (dtype) {
    case DType::kF16:
      return f(TypeTag<float16>{});
    case DType::kBF16:
      return f(TypeTag<bfloat16>{});
    case DType::kF32:
      return f(TypeTag<float>{});
    case DType::kF64:
      return f(TypeTag<double>{});
    default:
      fail(ErrorCode::kUsage, "a floating type is needed, not ", text(dtype));
  }
}

/// The type in which a reduction of T accumulates: 16-bit floats in f32.
template <class T>
struct Accumulator {
  using type = T;
};
template <>
struct Accumulator<float16> {
  using type = float;
};
template <>
struct Accumulator<bfloat16> {
  using type = float;
};

}  // namespace paddle
