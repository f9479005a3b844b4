// Vector exp, log, tanh, erf and the rest for the instruction set that Highway compiles for, from
// glibc's libmvec: 128-bit ("b") functions for the baseline, 256-bit ("d") for AVX2, 512-bit ("e")
// for AVX-512, all within 4 ulp. A tail goes through the same functions (see loops-inl.h), so a
// value does not depend on its position. Included once per instruction set.

#if defined(PADDLE_KERNELS_VECTOR_MATH_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef PADDLE_KERNELS_VECTOR_MATH_INL_H
#undef PADDLE_KERNELS_VECTOR_MATH_INL_H
#else
#define PADDLE_KERNELS_VECTOR_MATH_INL_H
#endif

#include <immintrin.h>

#include <cstring>
#include <limits>
#include <type_traits>

#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace paddle::cpu::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

template <class T>
using Tag = hn::ScalableTag<T>;
template <class T>
using Vec = hn::Vec<Tag<T>>;

// Symbols of libmvec encode instruction set and width: _ZGVeN16v_expf.
#undef PADDLE_VECTOR_SYMBOL_F32
#undef PADDLE_VECTOR_SYMBOL_F64
#if HWY_TARGET == HWY_AVX3 || HWY_TARGET == HWY_AVX3_DL
#define PADDLE_VECTOR_SYMBOL_F32(arguments, name) _ZGVeN16##arguments##_##name##f
#define PADDLE_VECTOR_SYMBOL_F64(arguments, name) _ZGVeN8##arguments##_##name
using RawF32 = __m512;
using RawF64 = __m512d;
#elif HWY_TARGET == HWY_AVX2
#define PADDLE_VECTOR_SYMBOL_F32(arguments, name) _ZGVdN8##arguments##_##name##f
#define PADDLE_VECTOR_SYMBOL_F64(arguments, name) _ZGVdN4##arguments##_##name
using RawF32 = __m256;
using RawF64 = __m256d;
#else
#define PADDLE_VECTOR_SYMBOL_F32(arguments, name) _ZGVbN4##arguments##_##name##f
#define PADDLE_VECTOR_SYMBOL_F64(arguments, name) _ZGVbN2##arguments##_##name
using RawF32 = __m128;
using RawF64 = __m128d;
#endif
// The baseline has one lane; it uses the first of a 128-bit register.
static_assert(sizeof(Vec<float>) <= sizeof(RawF32) && sizeof(Vec<double>) <= sizeof(RawF64));

HWY_INLINE RawF32 raw_of(Vec<float> v) {
  RawF32 raw = {};
  std::memcpy(&raw, &v, sizeof v);
  return raw;
}
HWY_INLINE RawF64 raw_of(Vec<double> v) {
  RawF64 raw = {};
  std::memcpy(&raw, &v, sizeof v);
  return raw;
}
HWY_INLINE Vec<float> vec_of(RawF32 raw) {
  Vec<float> v;
  std::memcpy(static_cast<void*>(&v), &raw, sizeof v);
  return v;
}
HWY_INLINE Vec<double> vec_of(RawF64 raw) {
  Vec<double> v;
  std::memcpy(static_cast<void*>(&v), &raw, sizeof v);
  return v;
}

#undef PADDLE_VECTOR_FUNCTION1
#define PADDLE_VECTOR_FUNCTION1(ours, theirs)                      \
  extern "C" RawF32 PADDLE_VECTOR_SYMBOL_F32(v, theirs)(RawF32);   \
  extern "C" RawF64 PADDLE_VECTOR_SYMBOL_F64(v, theirs)(RawF64);   \
  HWY_INLINE Vec<float> ours(Vec<float> x) {                       \
    return vec_of(PADDLE_VECTOR_SYMBOL_F32(v, theirs)(raw_of(x))); \
  }                                                                \
  HWY_INLINE Vec<double> ours(Vec<double> x) {                     \
    return vec_of(PADDLE_VECTOR_SYMBOL_F64(v, theirs)(raw_of(x))); \
  }
#undef PADDLE_VECTOR_FUNCTION2
#define PADDLE_VECTOR_FUNCTION2(ours, theirs)                                  \
  extern "C" RawF32 PADDLE_VECTOR_SYMBOL_F32(vv, theirs)(RawF32, RawF32);      \
  extern "C" RawF64 PADDLE_VECTOR_SYMBOL_F64(vv, theirs)(RawF64, RawF64);      \
  HWY_INLINE Vec<float> ours(Vec<float> x, Vec<float> y) {                     \
    return vec_of(PADDLE_VECTOR_SYMBOL_F32(vv, theirs)(raw_of(x), raw_of(y))); \
  }                                                                            \
  HWY_INLINE Vec<double> ours(Vec<double> x, Vec<double> y) {                  \
    return vec_of(PADDLE_VECTOR_SYMBOL_F64(vv, theirs)(raw_of(x), raw_of(y))); \
  }

// clang-format off
PADDLE_VECTOR_FUNCTION1(libmvec_exp, exp)
PADDLE_VECTOR_FUNCTION1(v_expm1, expm1)
PADDLE_VECTOR_FUNCTION1(v_exp2, exp2)
PADDLE_VECTOR_FUNCTION1(v_log, log)
PADDLE_VECTOR_FUNCTION1(v_log2, log2)
PADDLE_VECTOR_FUNCTION1(v_log10, log10)
PADDLE_VECTOR_FUNCTION1(v_log1p, log1p)
PADDLE_VECTOR_FUNCTION1(v_sin, sin)
PADDLE_VECTOR_FUNCTION1(v_cos, cos)
PADDLE_VECTOR_FUNCTION1(v_tan, tan)
PADDLE_VECTOR_FUNCTION1(v_asin, asin)
PADDLE_VECTOR_FUNCTION1(v_acos, acos)
PADDLE_VECTOR_FUNCTION1(v_atan, atan)
PADDLE_VECTOR_FUNCTION1(v_sinh, sinh)
PADDLE_VECTOR_FUNCTION1(v_cosh, cosh)
PADDLE_VECTOR_FUNCTION1(v_tanh, tanh)
PADDLE_VECTOR_FUNCTION1(v_asinh, asinh)
PADDLE_VECTOR_FUNCTION1(v_acosh, acosh)
PADDLE_VECTOR_FUNCTION1(v_atanh, atanh)
PADDLE_VECTOR_FUNCTION1(v_erf, erf)
PADDLE_VECTOR_FUNCTION1(v_erfc, erfc)
PADDLE_VECTOR_FUNCTION1(v_cbrt, cbrt)
PADDLE_VECTOR_FUNCTION2(v_pow, pow)
PADDLE_VECTOR_FUNCTION2(v_atan2, atan2)
PADDLE_VECTOR_FUNCTION2(v_hypot, hypot)
// clang-format on

/// A vector with the lanes of `like`, all set to `value`.
template <class V>
HWY_INLINE V constant([[maybe_unused]] V like, double value) {
  using D = hn::DFromV<V>;
  return hn::Set(D(), static_cast<hn::TFromD<D>>(value));
}
/// exp(x), and 0 below `lower`. libmvec falls back to scalar code for results that are subnormal or
/// zero, which is forty times slower; masked attention scores are full of them.
template <class V>
HWY_INLINE V exp_flush_below(V x, double lower) {
  constexpr bool kF32 = sizeof(hn::TFromV<V>) == 4;
  const auto small = hn::Lt(x, constant(x, lower));
  const auto large = hn::Gt(x, constant(x, kF32 ? 88.73 : 709.79));
  const V e = libmvec_exp(hn::IfThenZeroElse(hn::Or(small, large), x));
  const V infinity = constant(x, std::numeric_limits<double>::infinity());
  return hn::IfThenElse(large, infinity, hn::IfThenZeroElse(small, e));
}
/// exp(x).
template <class V>
HWY_INLINE V v_exp(V x) {
  return exp_flush_below(x, sizeof(hn::TFromV<V>) == 4 ? -103.98 : -745.14);
}
/// exp(x), and 0 where the result would be subnormal: for sums that are at least 1.
HWY_INLINE Vec<double> v_exp_normal(Vec<double> x) { return exp_flush_below(x, -708.39); }
/// The same within 2 ulp, for x up to 88 or NaN: x = n log(2) + r, and exp(r) is a polynomial of
/// least relative error. Adding kMagic rounds x / log(2) to n, and leaves n + 127, the exponent of
/// 2^n, in the low bits. Where x is NaN, the maximum is its second operand.
HWY_INLINE Vec<float> v_exp_normal(Vec<float> x) {
  constexpr float kMagic = 12582912.0f + 127.0f;
  const Tag<float> d;
  const hn::RebindToUnsigned<Tag<float>> bits;
  const auto set = [&](float value) HWY_ATTR { return hn::Set(d, value); };
  const Vec<float> bound = hn::Max(set(-88.0f), x);
  const Vec<float> shifted = hn::MulAdd(bound, set(0x1.715476p+0f), set(kMagic));
  const Vec<float> n = hn::Sub(shifted, set(kMagic));
  Vec<float> r = hn::NegMulAdd(n, set(0x1.62e400p-1f), bound);
  r = hn::NegMulAdd(n, set(0x1.7f7d1cp-20f), r);
  Vec<float> p = hn::MulAdd(set(0x1.6a2434p-10f), r, set(0x1.1239e2p-7f));
  p = hn::MulAdd(p, r, set(0x1.5558f2p-5f));
  p = hn::MulAdd(p, r, set(0x1.555492p-3f));
  p = hn::MulAdd(p, r, set(0x1.fffffcp-2f));
  p = hn::MulAdd(p, hn::Mul(r, r), r);
  const Vec<float> power = hn::BitCast(d, hn::ShiftLeft<23>(hn::BitCast(bits, shifted)));
  return hn::MulAdd(p, power, power);
}
/// 1 / (1 + exp(-x)).
template <class V>
HWY_INLINE V v_sigmoid(V x) {
  const V one = constant(x, 1);
  return hn::Div(one, hn::Add(one, v_exp(hn::Neg(x))));
}
/// log(1 + exp(x)) without overflow.
template <class V>
HWY_INLINE V v_softplus(V x) {
  const V zero = hn::Zero(hn::DFromV<V>());
  // The addition propagates NaN, which Max by itself might drop.
  return hn::Add(hn::IfThenElse(hn::Gt(zero, x), zero, x), v_log1p(v_exp(hn::Neg(hn::Abs(x)))));
}

}  // namespace paddle::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif
