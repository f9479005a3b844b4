// Vector loops of cumulative sums across rows.

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/reduce/scan_simd.cc"
#include "hwy/foreach_target.h"

#include <cstdint>

#include "hwy/highway.h"

#include "kernels/reduce/scan_simd.h"

HWY_BEFORE_NAMESPACE();
namespace paddle::cpu::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

namespace {

using D64 = hn::ScalableTag<double>;
using Narrow = hn::Rebind<float, D64>;

/// Two vectors of columns of kRows rows, whose sums stay in registers.
template <int kRows>
HWY_INLINE void accumulate_columns(const float* x, int64_t stride, double* sums, float* out) {
  const D64 d;
  const Narrow narrow;
  const size_t lanes = hn::Lanes(d);
  auto low = hn::LoadU(d, sums), high = hn::LoadU(d, sums + lanes);
#pragma GCC unroll 4
  for (int r = 0; r < kRows; ++r, x += stride, out += stride) {
    low = hn::Add(low, hn::PromoteTo(d, hn::LoadU(narrow, x)));
    high = hn::Add(high, hn::PromoteTo(d, hn::LoadU(narrow, x + lanes)));
    hn::StoreU(hn::DemoteTo(narrow, low), narrow, out);
    hn::StoreU(hn::DemoteTo(narrow, high), narrow, out + lanes);
  }
  hn::StoreU(low, d, sums);
  hn::StoreU(high, d, sums + lanes);
}

template <int kRows>
void accumulate_some(const float* x, int64_t stride, double* sums, float* out, int64_t n) {
  const int64_t step = 2 * static_cast<int64_t>(hn::Lanes(D64()));
  int64_t i = 0;
  for (; i + step <= n; i += step) accumulate_columns<kRows>(x + i, stride, sums + i, out + i);
  for (; i < n; ++i)
    for (int r = 0; r < kRows; ++r) {
      sums[i] += static_cast<double>(x[r * stride + i]);
      out[r * stride + i] = static_cast<float>(sums[i]);
    }
}

}  // namespace

void accumulate_f32(const float* x, int64_t rows, int64_t stride, double* sums, float* out,
                    int64_t n) {
  constexpr int kRows = 4;
  int64_t r = 0;
  for (; r + kRows <= rows; r += kRows)
    accumulate_some<kRows>(x + r * stride, stride, sums, out + r * stride, n);
  for (; r < rows; ++r) accumulate_some<1>(x + r * stride, stride, sums, out + r * stride, n);
}
// Plain loops, which the compiler vectorizes for each target.
void accumulate_f64(const double* x, double* sums, double* out, int64_t n) {
  for (int64_t i = 0; i < n; ++i) out[i] = sums[i] += x[i];
}
void accumulate_u64(const uint64_t* x, uint64_t* sums, uint64_t* out, int64_t n) {
  for (int64_t i = 0; i < n; ++i) out[i] = sums[i] += x[i];
}

}  // namespace paddle::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace paddle::cpu {

HWY_EXPORT(accumulate_f32);
HWY_EXPORT(accumulate_f64);
HWY_EXPORT(accumulate_u64);

void accumulate_rows(const float* x, int64_t rows, int64_t stride, double* sums, float* out,
                     int64_t n) {
  HWY_DYNAMIC_DISPATCH(accumulate_f32)(x, rows, stride, sums, out, n);
}
void accumulate_row(const double* x, double* sums, double* out, int64_t n) {
  HWY_DYNAMIC_DISPATCH(accumulate_f64)(x, sums, out, n);
}
void accumulate_row(const uint64_t* x, uint64_t* sums, uint64_t* out, int64_t n) {
  HWY_DYNAMIC_DISPATCH(accumulate_u64)(x, sums, out, n);
}

}  // namespace paddle::cpu
#endif
