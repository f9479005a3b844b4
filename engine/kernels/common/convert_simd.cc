// Vectorized conversions between f32 and 16-bit floats.

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/common/convert_simd.cc"
#include "hwy/foreach_target.h"

#include <cstdint>
#include <cstring>

#include "hwy/highway.h"

#include "kernels/common/convert.h"

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

}  // namespace
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

}  // namespace paddle::cpu
#endif
