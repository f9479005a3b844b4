// Loops that are not explicitly vectorized: integers and bool, comparisons, logic, and float
// functions that libmvec lacks. The compiler vectorizes what it can.

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "kernels/elementwise/elementwise.h"
#include "kernels/elementwise/integer_division.h"
#include "kernels/elementwise/special_functions.h"

namespace paddle::cpu {
namespace {

/// Integer arithmetic wraps around; it is done in unsigned types, where that is defined.
template <class T>
constexpr uint64_t bits(T value) {
  return static_cast<uint64_t>(value);
}

/// `value` truncated and saturated to the type's range.
template <class T>
T clamp_to(double value) {
  if (value <= static_cast<double>(std::numeric_limits<T>::lowest()))
    return std::numeric_limits<T>::lowest();
  if (value >= static_cast<double>(std::numeric_limits<T>::max()))
    return std::numeric_limits<T>::max();
  return static_cast<T>(value);
}

// clang-format off
struct Add { template <class T> T operator()(T a, T b) const { return static_cast<T>(bits(a) + bits(b)); } };
struct Subtract { template <class T> T operator()(T a, T b) const { return static_cast<T>(bits(a) - bits(b)); } };
struct Multiply { template <class T> T operator()(T a, T b) const { return static_cast<T>(bits(a) * bits(b)); } };
struct Maximum { template <class T> T operator()(T a, T b) const { return a > b ? a : b; } };
struct Minimum { template <class T> T operator()(T a, T b) const { return a < b ? a : b; } };
struct Neg { template <class T> T operator()(T x) const { return static_cast<T>(uint64_t{0} - bits(x)); } };
struct Abs { template <class T> T operator()(T x) const { return x < T(0) ? static_cast<T>(uint64_t{0} - bits(x)) : x; } };
struct Square { template <class T> T operator()(T x) const { return static_cast<T>(bits(x) * bits(x)); } };
struct Sign { template <class T> T operator()(T x) const { return static_cast<T>((x > T(0)) - (x < T(0))); } };
struct Relu { template <class T> T operator()(T x) const { return x > T(0) ? x : T(0); } };
struct Identity { template <class T> T operator()(T x) const { return x; } };
struct BitwiseAnd { template <class T> T operator()(T a, T b) const { return static_cast<T>(a & b); } };
struct BitwiseOr { template <class T> T operator()(T a, T b) const { return static_cast<T>(a | b); } };
struct BitwiseXor { template <class T> T operator()(T a, T b) const { return static_cast<T>(a ^ b); } };
// clang-format on

struct BitwiseNot {
  template <class T>
  T operator()(T x) const {
    if constexpr (std::is_same_v<T, bool>) {
      return !x;
    } else {
      return static_cast<T>(~x);
    }
  }
};

struct Zero {
  template <class T>
  T operator()(T) const {
    return T(0);
  }
};
struct Remainder {  // has the sign of the divisor
  template <class T>
  T operator()(T a, T b) const {
    const T remainder = std::fmod(a, b);
    return remainder != 0 && (remainder < 0) != (b < 0) ? remainder + b : remainder;
  }
};
struct Fmod {
  template <class T>
  T operator()(T a, T b) const {
    return std::fmod(a, b);
  }
};
using IntegerDivide = IntegerDivision<IntegerQuotient::kTruncated>;
using IntegerFloorDivide = IntegerDivision<IntegerQuotient::kFloored>;
using IntegerFmod = IntegerDivision<IntegerQuotient::kTruncatedRemainder>;
using IntegerRemainder = IntegerDivision<IntegerQuotient::kFlooredRemainder>;
/// By squaring; a negative exponent yields 0 except for bases 1 and -1.
struct Pow {
  template <class T>
  T operator()(T base, T exponent) const {
    if constexpr (std::is_signed_v<T>) {
      if (exponent < 0) {
        if (base == T(1)) return T(1);
        if (base == T(-1)) return exponent % 2 == 0 ? T(1) : T(-1);
        return T(0);
      }
    }
    uint64_t result = 1, factor = bits(base), left = bits(exponent);
    for (; left != 0; left >>= 1) {
      if (left & 1) result *= factor;
      factor *= factor;
    }
    return static_cast<T>(result);
  }
};
struct LeftShift {
  template <class T>
  T operator()(T a, T b) const {
    return bits(b) >= sizeof(T) * 8 ? T(0) : static_cast<T>(bits(a) << bits(b));
  }
};
struct RightShift {  // keeps the sign
  template <class T>
  T operator()(T a, T b) const {
    if (bits(b) >= sizeof(T) * 8) return a < T(0) ? static_cast<T>(-1) : T(0);
    return static_cast<T>(a >> b);
  }
};
struct Gcd {
  template <class T>
  T operator()(T a, T b) const {
    uint64_t x = bits(Abs()(a)), y = bits(Abs()(b));
    while (y != 0) {
      const uint64_t remainder = x % y;
      x = y;
      y = remainder;
    }
    return static_cast<T>(x);
  }
};
struct Lcm {
  template <class T>
  T operator()(T a, T b) const {
    const uint64_t divisor = bits(Gcd()(a, b));
    return divisor == 0 ? T(0) : static_cast<T>(bits(Abs()(a)) / divisor * bits(Abs()(b)));
  }
};
/// params: scale, bias, 0 if the bias is added before scaling
struct Scale {
  template <class T>
  T operator()(T x, const double* p) const {
    if (p[0] == std::floor(p[0]) && p[1] == std::floor(p[1]) && std::abs(p[0]) < 0x1p53 &&
        std::abs(p[1]) < 0x1p53) {
      const uint64_t scale = bits(static_cast<int64_t>(p[0]));
      const uint64_t bias = bits(static_cast<int64_t>(p[1]));
      return static_cast<T>(p[2] == 0 ? (bits(x) + bias) * scale : bits(x) * scale + bias);
    }
    const double value = static_cast<double>(x);
    return clamp_to<T>(p[2] == 0 ? (value + p[1]) * p[0] : value * p[0] + p[1]);
  }
};
/// params: lower, upper
struct Clip {
  template <class T>
  T operator()(T x, const double* p) const {
    const double value = static_cast<double>(x);
    if (value > p[1]) return clamp_to<T>(p[1]);
    return value < p[0] ? clamp_to<T>(p[0]) : x;
  }
};

// clang-format off
struct Equal { template <class T> bool operator()(T a, T b) const { return a == b; } };
struct NotEqual { template <class T> bool operator()(T a, T b) const { return a != b; } };
struct LessThan { template <class T> bool operator()(T a, T b) const { return a < b; } };
struct LessEqual { template <class T> bool operator()(T a, T b) const { return a <= b; } };
struct GreaterThan { template <class T> bool operator()(T a, T b) const { return a > b; } };
struct GreaterEqual { template <class T> bool operator()(T a, T b) const { return a >= b; } };
struct LogicalAnd { template <class T> bool operator()(T a, T b) const { return (a != T(0)) & (b != T(0)); } };
struct LogicalOr { template <class T> bool operator()(T a, T b) const { return (a != T(0)) | (b != T(0)); } };
struct LogicalXor { template <class T> bool operator()(T a, T b) const { return (a != T(0)) != (b != T(0)); } };
struct LogicalNot { template <class T> bool operator()(T x) const { return x == T(0); } };
struct IsNan { template <class T> bool operator()(T x) const { return x != x; } };
struct IsFinite { template <class T> bool operator()(T x) const {
  if constexpr (std::is_floating_point_v<T>) return std::abs(x) <= std::numeric_limits<T>::max(); else return x == x; } };
struct IsInf { template <class T> bool operator()(T x) const {
  if constexpr (std::is_floating_point_v<T>) return std::abs(x) > std::numeric_limits<T>::max(); else return x != x; } };
struct IsPosInf { template <class T> bool operator()(T x) const {
  if constexpr (std::is_floating_point_v<T>) return x > std::numeric_limits<T>::max(); else return x != x; } };
struct IsNegInf { template <class T> bool operator()(T x) const {
  if constexpr (std::is_floating_point_v<T>) return x < std::numeric_limits<T>::lowest(); else return x != x; } };
struct Signbit { template <class T> bool operator()(T x) const {
  if constexpr (std::is_floating_point_v<T>) return std::signbit(x); else return x < T(0); } };
// The f32 versions compute in f64 and round once.
struct Lgamma { double operator()(double x) const { return log_gamma(x); } };
struct Digamma { double operator()(double x) const { return digamma(x); } };
struct Trigamma { double operator()(double x) const { return polygamma(1, x); } };
struct Polygamma { double operator()(double x, const double* p) const { return polygamma(static_cast<int>(p[0]), x); } };
struct Erfinv { double operator()(double x) const { return erf_inverse(x); } };
struct I0 { double operator()(double x) const { return bessel_i0(x); } };
struct I0e { double operator()(double x) const { return bessel_i0e(x); } };
struct I1 { double operator()(double x) const { return bessel_i1(x); } };
struct I1e { double operator()(double x) const { return bessel_i1e(x); } };
struct Nextafter { template <class T> T operator()(T a, T b) const { return std::nextafter(a, b); } };
struct Ldexp { template <class T> T operator()(T a, T b) const { return a * std::exp2(b); } };
// params: digits; rounds half to even
struct RoundDigits { double operator()(double x, const double* p) const {
  const double unit = std::pow(10.0, std::abs(p[0]));
  return p[0] >= 0 ? std::nearbyint(x * unit) / unit : std::nearbyint(x / unit) * unit; } };
// clang-format on
/// Like Python: computed from the exact remainder, so that 1 // 0.1 is 9 and inf // 1 is NaN.
struct FloorDivideFloat {
  template <class T>
  T operator()(T a, T b) const {
    if (b == T(0)) return a / b;
    const T remainder = std::fmod(a, b);
    T quotient = (a - remainder) / b;
    if (remainder != T(0) && (remainder < T(0)) != (b < T(0))) quotient -= T(1);
    if (quotient == T(0)) return std::copysign(T(0), a / b);
    const T rounded = std::floor(quotient);
    return quotient - rounded > T(0.5) ? rounded + T(1) : rounded;
  }
};
struct Heaviside {
  template <class T>
  T operator()(T x, T at_zero) const {
    if (x != x) return x;
    return x > T(0) ? T(1) : x < T(0) ? T(0) : at_zero;
  }
};

struct IntegerEntry {
  std::string_view name;
  Loop loops[9];  // by dtype: bool, i8, i16, i32, i64, u8, u16, u32, u64
};

template <class F, int kArity>
constexpr IntegerEntry integer_entry(std::string_view name) {
  return {name,
          {&scalar_loop<bool, bool, kArity, F>, &scalar_loop<int8_t, int8_t, kArity, F>,
           &scalar_loop<int16_t, int16_t, kArity, F>, &scalar_loop<int32_t, int32_t, kArity, F>,
           &scalar_loop<int64_t, int64_t, kArity, F>, &scalar_loop<uint8_t, uint8_t, kArity, F>,
           &scalar_loop<uint16_t, uint16_t, kArity, F>, &scalar_loop<uint32_t, uint32_t, kArity, F>,
           &scalar_loop<uint64_t, uint64_t, kArity, F>}};
}

constexpr IntegerEntry kIntegerLoops[] = {
    integer_entry<Add, 2>("add"),
    integer_entry<Subtract, 2>("subtract"),
    integer_entry<Multiply, 2>("multiply"),
    integer_entry<IntegerFloorDivide, 2>("floor_divide"),
    integer_entry<IntegerDivide, 2>("divide"),
    integer_entry<IntegerRemainder, 2>("remainder"),
    integer_entry<IntegerFmod, 2>("fmod"),
    integer_entry<Maximum, 2>("maximum"),
    integer_entry<Minimum, 2>("minimum"),
    integer_entry<Maximum, 2>("fmax"),
    integer_entry<Minimum, 2>("fmin"),
    integer_entry<Pow, 2>("pow"),
    integer_entry<Gcd, 2>("gcd"),
    integer_entry<Lcm, 2>("lcm"),
    integer_entry<Heaviside, 2>("heaviside"),
    integer_entry<BitwiseAnd, 2>("bitwise_and"),
    integer_entry<BitwiseOr, 2>("bitwise_or"),
    integer_entry<BitwiseXor, 2>("bitwise_xor"),
    integer_entry<BitwiseNot, 1>("bitwise_not"),
    integer_entry<LeftShift, 2>("bitwise_left_shift"),
    integer_entry<RightShift, 2>("bitwise_right_shift"),
    integer_entry<Neg, 1>("neg"),
    integer_entry<Abs, 1>("abs"),
    integer_entry<Square, 1>("square"),
    integer_entry<Sign, 1>("sign"),
    integer_entry<Relu, 1>("relu"),
    integer_entry<Identity, 1>("floor"),
    integer_entry<Identity, 1>("ceil"),
    integer_entry<Identity, 1>("round"),
    integer_entry<Identity, 1>("trunc"),
    integer_entry<Zero, 1>("frac"),
    integer_entry<Scale, 1>("scale"),
    integer_entry<Clip, 1>("clip"),
};

struct PredicateEntry {
  std::string_view name;
  Loop loops[9];
  Loop f32, f64;
};

template <class F, int kArity>
constexpr PredicateEntry predicate_entry(std::string_view name) {
  return {name,
          {&scalar_loop<bool, bool, kArity, F>, &scalar_loop<int8_t, bool, kArity, F>,
           &scalar_loop<int16_t, bool, kArity, F>, &scalar_loop<int32_t, bool, kArity, F>,
           &scalar_loop<int64_t, bool, kArity, F>, &scalar_loop<uint8_t, bool, kArity, F>,
           &scalar_loop<uint16_t, bool, kArity, F>, &scalar_loop<uint32_t, bool, kArity, F>,
           &scalar_loop<uint64_t, bool, kArity, F>},
          &scalar_loop<float, bool, kArity, F>,
          &scalar_loop<double, bool, kArity, F>};
}

constexpr PredicateEntry kPredicateLoops[] = {
    predicate_entry<Equal, 2>("equal"),
    predicate_entry<NotEqual, 2>("not_equal"),
    predicate_entry<LessThan, 2>("less_than"),
    predicate_entry<LessEqual, 2>("less_equal"),
    predicate_entry<GreaterThan, 2>("greater_than"),
    predicate_entry<GreaterEqual, 2>("greater_equal"),
    predicate_entry<LogicalAnd, 2>("logical_and"),
    predicate_entry<LogicalOr, 2>("logical_or"),
    predicate_entry<LogicalXor, 2>("logical_xor"),
    predicate_entry<LogicalNot, 1>("logical_not"),
    predicate_entry<IsNan, 1>("isnan"),
    predicate_entry<IsInf, 1>("isinf"),
    predicate_entry<IsFinite, 1>("isfinite"),
    predicate_entry<IsPosInf, 1>("isposinf"),
    predicate_entry<IsNegInf, 1>("isneginf"),
    predicate_entry<Signbit, 1>("signbit"),
};

template <class F, int kArity>
constexpr LoopEntry scalar_entry(const char* name) {
  return {name, &scalar_loop<float, float, kArity, F>, &scalar_loop<double, double, kArity, F>};
}

constexpr LoopEntry kFloatLoops[] = {
    scalar_entry<Remainder, 2>("remainder"),
    scalar_entry<Fmod, 2>("fmod"),
    scalar_entry<FloorDivideFloat, 2>("floor_divide"),
    scalar_entry<Heaviside, 2>("heaviside"),
    scalar_entry<Nextafter, 2>("nextafter"),
    scalar_entry<Ldexp, 2>("ldexp"),
    scalar_entry<Lgamma, 1>("lgamma"),
    scalar_entry<Digamma, 1>("digamma"),
    scalar_entry<Trigamma, 1>("trigamma"),
    scalar_entry<Polygamma, 1>("polygamma"),
    scalar_entry<Erfinv, 1>("erfinv"),
    scalar_entry<I0, 1>("i0"),
    scalar_entry<I0e, 1>("i0e"),
    scalar_entry<I1, 1>("i1"),
    scalar_entry<I1e, 1>("i1e"),
    scalar_entry<RoundDigits, 1>("round_digits"),
};

}  // namespace

Loop float_loop(std::string_view name, DType compute) {
  for (const auto& entries : {arithmetic_loops(), math_loops(), activation_loops(),
                              std::span<const LoopEntry>(kFloatLoops)})
    for (const LoopEntry& entry : entries)
      if (name == entry.name) return compute == DType::kF64 ? entry.f64 : entry.f32;
  return nullptr;
}

Loop integer_loop(std::string_view name, DType compute) {
  if (const Loop division = integer_division_loop(name, compute)) return division;
  for (const IntegerEntry& entry : kIntegerLoops)
    if (name == entry.name && compute <= DType::kU64)
      return entry.loops[static_cast<size_t>(compute)];
  return nullptr;
}

Loop predicate_loop(std::string_view name, DType compute) {
  for (const PredicateEntry& entry : kPredicateLoops) {
    if (name != entry.name) continue;
    if (compute == DType::kF32) return entry.f32;
    if (compute == DType::kF64) return entry.f64;
    return compute <= DType::kU64 ? entry.loops[static_cast<size_t>(compute)] : nullptr;
  }
  return nullptr;
}

}  // namespace paddle::cpu
