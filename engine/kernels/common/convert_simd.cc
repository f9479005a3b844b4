// Vectorized conversions between f32 and 16-bit floats, and from f32 to integers and bool.

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/common/convert_simd.cc"
#include "hwy/foreach_target.h"

#include <algorithm>
#include <cstdint>
#include <cstring>

#include "hwy/highway.h"

#include "kernels/common/convert.h"
#include "kernels/common/convert_integers.h"
#include "tensor/to_integer.h"

HWY_BEFORE_NAMESPACE();
namespace paddle::cpu::HWY_NAMESPACE {
namespace {
namespace hn = hwy::HWY_NAMESPACE;

#if HWY_TARGET == HWY_SCALAR
void from_half(const uint16_t* source, float* target, int64_t n) {
  for (int64_t i = 0; i < n; ++i) target[i] = float_detail::half_to_float(source[i]);
}
void to_half(const float* source, uint16_t* target, int64_t n) {
  for (int64_t i = 0; i < n; ++i) target[i] = float_detail::float_to_half(source[i]);
}
#else
void from_half(const uint16_t* source, float* target, int64_t n) {
  const hn::ScalableTag<float> d;
  const hn::Rebind<hwy::float16_t, decltype(d)> dh;
  const hn::Rebind<uint16_t, decltype(d)> du;
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
  int64_t i = 0;
  for (; i + lanes <= n; i += lanes)
    hn::StoreU(hn::PromoteTo(d, hn::BitCast(dh, hn::LoadU(du, source + i))), d, target + i);
  for (; i < n; ++i) target[i] = float_detail::half_to_float(source[i]);
}
void to_half(const float* source, uint16_t* target, int64_t n) {
  const hn::ScalableTag<float> d;
  const hn::Rebind<hwy::float16_t, decltype(d)> dh;
  const hn::Rebind<uint16_t, decltype(d)> du;
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
  int64_t i = 0;
  for (; i + lanes <= n; i += lanes)
    hn::StoreU(hn::BitCast(du, hn::DemoteTo(dh, hn::LoadU(d, source + i))), du, target + i);
  for (; i < n; ++i) target[i] = float_detail::float_to_half(source[i]);
}
#endif

// Plain loops over bits, which the compiler vectorizes for each target.
void from_bfloat(const uint16_t* source, uint32_t* target, int64_t n) {
  for (int64_t i = 0; i < n; ++i) target[i] = static_cast<uint32_t>(source[i]) << 16;
}
void to_bfloat(const uint32_t* source, uint16_t* target, int64_t n) {
  for (int64_t i = 0; i < n; ++i) {
    const uint32_t bits = source[i];
    const uint32_t rounded = (bits + 0x7fffu + ((bits >> 16) & 1)) >> 16;
    const uint32_t nan = (bits >> 16) | 0x40;
    target[i] = static_cast<uint16_t>((bits & 0x7fffffffu) > 0x7f800000u ? nan : rounded);
  }
}

/// Elements that all fit 32 bits go through conversions to int32, others one by one.
template <class To>
HWY_INLINE void to_integer_block(const float* x, To* y, int64_t count) {
  // Magnitudes are in the order of their bits, and NaN is above all of them.
  int32_t largest = 0, limit;
  for (int64_t i = 0; i < count; ++i) {
    int32_t bits;
    std::memcpy(&bits, x + i, sizeof bits);
    largest = std::max(largest, bits & 0x7fffffff);
  }
  constexpr float kLimit = 0x1p31f;
  std::memcpy(&limit, &kLimit, sizeof limit);
  if (largest < limit) {
    for (int64_t i = 0; i < count; ++i) y[i] = static_cast<To>(static_cast<int32_t>(x[i]));
  } else {
    for (int64_t i = 0; i < count; ++i) y[i] = to_integer<To>(x[i]);
  }
}

template <class To>
void to_integers(const float* source, To* target, int64_t n) {
  constexpr int64_t kBlock = 128;  // a constant, so that the loops have no ends of their own
  int64_t first = 0;
  for (; first + kBlock <= n; first += kBlock)
    to_integer_block(source + first, target + first, kBlock);
  to_integer_block(source + first, target + first, n - first);
}
void to_bools(const float* source, uint8_t* target, int64_t n) {
  for (int64_t i = 0; i < n; ++i) target[i] = source[i] != 0.0f ? 1 : 0;
}

}  // namespace
void to_i8_loop(const float* s, int8_t* t, int64_t n) { to_integers(s, t, n); }
void to_u8_loop(const float* s, uint8_t* t, int64_t n) { to_integers(s, t, n); }
void to_i16_loop(const float* s, int16_t* t, int64_t n) { to_integers(s, t, n); }
void to_u16_loop(const float* s, uint16_t* t, int64_t n) { to_integers(s, t, n); }
void to_i32_loop(const float* s, int32_t* t, int64_t n) { to_integers(s, t, n); }
void to_u32_loop(const float* s, uint32_t* t, int64_t n) { to_integers(s, t, n); }
void to_i64_loop(const float* s, int64_t* t, int64_t n) { to_integers(s, t, n); }
void to_u64_loop(const float* s, uint64_t* t, int64_t n) { to_integers(s, t, n); }
void to_bool_loop(const float* s, uint8_t* t, int64_t n) { to_bools(s, t, n); }
void from_half_loop(const uint16_t* s, float* t, int64_t n) { from_half(s, t, n); }
void to_half_loop(const float* s, uint16_t* t, int64_t n) { to_half(s, t, n); }
void from_bfloat_loop(const uint16_t* s, uint32_t* t, int64_t n) { from_bfloat(s, t, n); }
void to_bfloat_loop(const uint32_t* s, uint16_t* t, int64_t n) { to_bfloat(s, t, n); }
}  // namespace paddle::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace paddle::cpu {

HWY_EXPORT(from_half_loop);
HWY_EXPORT(to_half_loop);
HWY_EXPORT(from_bfloat_loop);
HWY_EXPORT(to_bfloat_loop);
HWY_EXPORT(to_i8_loop);
HWY_EXPORT(to_u8_loop);
HWY_EXPORT(to_i16_loop);
HWY_EXPORT(to_u16_loop);
HWY_EXPORT(to_i32_loop);
HWY_EXPORT(to_u32_loop);
HWY_EXPORT(to_i64_loop);
HWY_EXPORT(to_u64_loop);
HWY_EXPORT(to_bool_loop);

void half_to_float(const float16* source, float* target, int64_t n) {
  HWY_DYNAMIC_DISPATCH(from_half_loop)(reinterpret_cast<const uint16_t*>(source), target, n);
}
void float_to_half(const float* source, float16* target, int64_t n) {
  HWY_DYNAMIC_DISPATCH(to_half_loop)(source, reinterpret_cast<uint16_t*>(target), n);
}
void bfloat_to_float(const bfloat16* source, float* target, int64_t n) {
  HWY_DYNAMIC_DISPATCH(from_bfloat_loop)
  (reinterpret_cast<const uint16_t*>(source), reinterpret_cast<uint32_t*>(target), n);
}
void float_to_bfloat(const float* source, bfloat16* target, int64_t n) {
  HWY_DYNAMIC_DISPATCH(to_bfloat_loop)
  (reinterpret_cast<const uint32_t*>(source), reinterpret_cast<uint16_t*>(target), n);
}
void float_to_integer(const float* source, int8_t* target, int64_t n) {
  HWY_DYNAMIC_DISPATCH(to_i8_loop)(source, target, n);
}
void float_to_integer(const float* source, uint8_t* target, int64_t n) {
  HWY_DYNAMIC_DISPATCH(to_u8_loop)(source, target, n);
}
void float_to_integer(const float* source, int16_t* target, int64_t n) {
  HWY_DYNAMIC_DISPATCH(to_i16_loop)(source, target, n);
}
void float_to_integer(const float* source, uint16_t* target, int64_t n) {
  HWY_DYNAMIC_DISPATCH(to_u16_loop)(source, target, n);
}
void float_to_integer(const float* source, int32_t* target, int64_t n) {
  HWY_DYNAMIC_DISPATCH(to_i32_loop)(source, target, n);
}
void float_to_integer(const float* source, uint32_t* target, int64_t n) {
  HWY_DYNAMIC_DISPATCH(to_u32_loop)(source, target, n);
}
void float_to_integer(const float* source, int64_t* target, int64_t n) {
  HWY_DYNAMIC_DISPATCH(to_i64_loop)(source, target, n);
}
void float_to_integer(const float* source, uint64_t* target, int64_t n) {
  HWY_DYNAMIC_DISPATCH(to_u64_loop)(source, target, n);
}
void float_to_bool(const float* source, bool* target, int64_t n) {
  HWY_DYNAMIC_DISPATCH(to_bool_loop)(source, reinterpret_cast<uint8_t*>(target), n);
}

}  // namespace paddle::cpu
#endif
