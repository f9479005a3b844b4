// Division of integers in double precision. The quotient of two integers of 32 bits, or of 51 bits,
// is further from the next integer than the rounding error of a division in double, so that its
// truncation is exact. Vectors with larger numbers are divided one by one.

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/elementwise/integer_division_simd.cc"
#include "hwy/foreach_target.h"

#include <algorithm>
#include <cstdint>

#include "hwy/highway.h"

#include "kernels/elementwise/integer_division.h"

HWY_BEFORE_NAMESPACE();
namespace paddle::cpu::HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;
using D64 = hn::ScalableTag<double>;
using V64 = hn::Vec<D64>;

/// The quotient or remainder of integers in double; anything where b is 0.
template <IntegerQuotient kKind>
HWY_INLINE V64 divide(V64 a, V64 b) {
  const V64 quotient = hn::Div(a, b);
  if constexpr (kKind == IntegerQuotient::kTruncated) return hn::Trunc(quotient);
  if constexpr (kKind == IntegerQuotient::kFloored) return hn::Floor(quotient);
  if constexpr (kKind == IntegerQuotient::kTruncatedRemainder)
    return hn::Sub(a, hn::Mul(hn::Trunc(quotient), b));
  return hn::Sub(a, hn::Mul(hn::Floor(quotient), b));
}

template <IntegerQuotient kKind>
struct Divide32 {
  using T = int32_t;
  using D = hn::Rebind<int32_t, D64>;

  static HWY_INLINE hn::Vec<D> at(const T* x, const T* y) {
    const D64 wide;
    const D d;
    const auto a = hn::LoadU(d, x), b = hn::LoadU(d, y);
    const auto out = hn::DemoteTo(d, divide<kKind>(hn::PromoteTo(wide, a), hn::PromoteTo(wide, b)));
    const auto defined = hn::IfThenZeroElse(hn::Eq(b, hn::Zero(d)), out);
    if constexpr (kKind == IntegerQuotient::kTruncated || kKind == IntegerQuotient::kFloored)
      return hn::IfThenElse(hn::Eq(b, hn::Set(d, -1)), hn::Neg(a), defined);
    else
      return hn::IfThenZeroElse(hn::Eq(b, hn::Set(d, -1)), defined);
  }
};

template <IntegerQuotient kKind>
struct Divide64 {
  using T = int64_t;
  using D = hn::RebindToSigned<D64>;

  static constexpr int64_t kHalf = int64_t{1} << 51;         // magnitudes are below
  static constexpr int64_t kMagicBits = 0x4338000000000000;  // of the double below
  static constexpr double kMagic = 0x1p52 + 0x1p51;

  static HWY_INLINE hn::Vec<D> at(const T* x, const T* y) {
    const D64 wide;
    const D d;
    const hn::RebindToUnsigned<D> du;
    const auto a = hn::LoadU(d, x), b = hn::LoadU(d, y);
    const auto half = hn::Set(d, kHalf);
    const auto high = hn::Or(hn::ShiftRight<52>(hn::BitCast(du, hn::Add(a, half))),
                             hn::ShiftRight<52>(hn::BitCast(du, hn::Add(b, half))));
    if (!hn::AllTrue(du, hn::Eq(high, hn::Zero(du)))) {
      HWY_ALIGN T values[hn::MaxLanes(D())];
      for (size_t i = 0; i < hn::Lanes(d); ++i) values[i] = IntegerDivision<kKind>()(x[i], y[i]);
      return hn::Load(d, values);
    }
    // The low bits of a double between 2^52 and 2^53 are an integer.
    const auto bits = hn::Set(d, kMagicBits);
    const auto magic = hn::Set(wide, kMagic);
    const auto as_double = [&](hn::Vec<D> v) HWY_ATTR {
      return hn::Sub(hn::BitCast(wide, hn::Add(v, bits)), magic);
    };
    const V64 out = divide<kKind>(as_double(a), as_double(b));
    const auto integer = hn::Sub(hn::BitCast(d, hn::Add(out, magic)), bits);
    return hn::IfThenZeroElse(hn::Eq(b, hn::Zero(d)), integer);
  }
};

template <class F>
void loop(const void* const* in, void* result, int64_t n, const double*) {
  using T = typename F::T;
  const typename F::D d;
  const auto* const a = static_cast<const T*>(in[0]);
  const auto* const b = static_cast<const T*>(in[1]);
  T* const out = static_cast<T*>(result);
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
  int64_t i = 0;
  for (; i + lanes <= n; i += lanes) hn::StoreU(F::at(a + i, b + i), d, out + i);
  if (i == n) return;
  HWY_ALIGN T padded[2][hn::MaxLanes(typename F::D())] = {};
  std::copy(a + i, a + n, padded[0]);
  std::copy(b + i, b + n, padded[1]);
  HWY_ALIGN T values[hn::MaxLanes(typename F::D())];
  hn::Store(F::at(padded[0], padded[1]), d, values);
  std::copy(values, values + (n - i), out + i);
}

template <IntegerQuotient kKind>
Loop loop_of(bool wide) {
  return wide ? &loop<Divide64<kKind>> : &loop<Divide32<kKind>>;
}

}  // namespace

Loop division_loop(IntegerQuotient kind, bool wide) {
  switch (kind) {
    case IntegerQuotient::kTruncated:
      return loop_of<IntegerQuotient::kTruncated>(wide);
    case IntegerQuotient::kFloored:
      return loop_of<IntegerQuotient::kFloored>(wide);
    case IntegerQuotient::kTruncatedRemainder:
      return loop_of<IntegerQuotient::kTruncatedRemainder>(wide);
    default:
      return loop_of<IntegerQuotient::kFlooredRemainder>(wide);
  }
}

}  // namespace paddle::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace paddle::cpu {

HWY_EXPORT(division_loop);

Loop integer_division_loop(std::string_view name, DType compute) {
  if (compute != DType::kI32 && compute != DType::kI64) return nullptr;
  const auto loop = [&](IntegerQuotient kind) {
    return HWY_DYNAMIC_DISPATCH(division_loop)(kind, compute == DType::kI64);
  };
  if (name == "divide") return loop(IntegerQuotient::kTruncated);
  if (name == "floor_divide") return loop(IntegerQuotient::kFloored);
  if (name == "fmod") return loop(IntegerQuotient::kTruncatedRemainder);
  if (name == "remainder") return loop(IntegerQuotient::kFlooredRemainder);
  return nullptr;
}

}  // namespace paddle::cpu
#endif
