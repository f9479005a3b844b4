// Vector loops that quantize and dequantize.

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/quantized/quantize_simd.cc"
#include "hwy/foreach_target.h"

#include <algorithm>
#include <limits>

#include "kernels/elementwise/loops-inl.h"
#include "kernels/quantized/quantize_simd.h"

HWY_BEFORE_NAMESPACE();
namespace paddle::cpu::HWY_NAMESPACE {
namespace {

struct Dequantize {
  template <class V>
  V operator()(V x, V scale, V zero, const double*) const {
    return hn::Mul(hn::Sub(x, zero), scale);
  }
};

/// Float vectors whose integers fill at least the narrowest vector that can be stored.
using Floats = hn::ScalableTag<float>;

template <class T>
void quantize_loop(const void* const* operands, void* result, int64_t n, const double*) {
  const Floats d;
  const hn::Rebind<int32_t, Floats> to_int;
  const hn::Rebind<T, Floats> narrow;
  const auto lower = hn::Set(d, static_cast<float>(std::numeric_limits<T>::lowest()));
  const auto upper = hn::Set(d, static_cast<float>(std::numeric_limits<T>::max()));
  const auto quantize_vector = [&](const float* x, const float* scale, const float* zero) {
    const auto rounded =
        hn::Add(hn::Round(hn::Div(hn::LoadU(d, x), hn::LoadU(d, scale))), hn::LoadU(d, zero));
    // NaN becomes the lower bound.
    const auto clamped = hn::IfThenElse(hn::Gt(rounded, lower), rounded, lower);
    return hn::DemoteTo(narrow, hn::ConvertTo(to_int, hn::Min(clamped, upper)));
  };
  const float* const x = static_cast<const float*>(operands[0]);
  const float* const scale = static_cast<const float*>(operands[1]);
  const float* const zero = static_cast<const float*>(operands[2]);
  T* const out = static_cast<T*>(result);
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
  int64_t i = 0;
  for (; i + lanes <= n; i += lanes)
    hn::StoreU(quantize_vector(x + i, scale + i, zero + i), narrow, out + i);
  if (i >= n) return;
  constexpr size_t kLanes = hn::MaxLanes(Floats());
  float padded[3][kLanes] = {};
  const size_t count = std::min(kLanes, static_cast<size_t>(n - i));
  std::memcpy(padded[0], x + i, count * sizeof(float));
  std::fill_n(padded[1], kLanes, 1.0f);
  std::memcpy(padded[1], scale + i, count * sizeof(float));
  std::memcpy(padded[2], zero + i, count * sizeof(float));
  T values[kLanes];
  hn::StoreU(quantize_vector(padded[0], padded[1], padded[2]), narrow, values);
  std::memcpy(out + i, values, count * sizeof(T));
}

}  // namespace

Loop quantize_loop_of_target(DType result) {
  switch (result) {
    case DType::kU8:
      return &quantize_loop<uint8_t>;
    case DType::kI8:
      return &quantize_loop<int8_t>;
    case DType::kU16:
      return &quantize_loop<uint16_t>;
    case DType::kI16:
      return &quantize_loop<int16_t>;
    default:
      return nullptr;
  }
}

Loop dequantize_loop_of_target() { return &VectorLoop<Dequantize, float, 3>::run; }

void min_max_loop(const float* x, int64_t n, float* low, float* high) {
  const Floats d;
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
  auto lower = hn::Zero(d), upper = hn::Zero(d), lower2 = lower, upper2 = upper;
  const auto update = [&](auto v, auto& l, auto& g) {
    l = hn::IfThenElse(hn::Lt(v, l), v, l);
    g = hn::IfThenElse(hn::Gt(v, g), v, g);
  };
  int64_t i = 0;
  for (; i + 2 * lanes <= n; i += 2 * lanes) {
    update(hn::LoadU(d, x + i), lower, upper);
    update(hn::LoadU(d, x + i + lanes), lower2, upper2);
  }
  *low = hn::GetLane(hn::MinOfLanes(d, hn::Min(lower, lower2)));
  *high = hn::GetLane(hn::MaxOfLanes(d, hn::Max(upper, upper2)));
  for (; i < n; ++i) {
    *low = x[i] < *low ? x[i] : *low;
    *high = x[i] > *high ? x[i] : *high;
  }
}

}  // namespace paddle::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace paddle::cpu {

HWY_EXPORT(quantize_loop_of_target);
HWY_EXPORT(dequantize_loop_of_target);
HWY_EXPORT(min_max_loop);

Loop quantize_loop(DType result) { return HWY_DYNAMIC_DISPATCH(quantize_loop_of_target)(result); }
Loop dequantize_loop() { return HWY_DYNAMIC_DISPATCH(dequantize_loop_of_target)(); }
void min_max_with_zero(const float* x, int64_t n, float& low, float& high) {
  HWY_DYNAMIC_DISPATCH(min_max_loop)(x, n, &low, &high);
}

}  // namespace paddle::cpu
#endif
