// Products of a few rows: with rows of the matrix as streams, several at a time, where the columns
// are contiguous, and with dot products of several columns where the rows are.

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/linalg/few_rows_simd.cc"
#include "hwy/foreach_target.h"

#include <algorithm>
#include <cstddef>
#include <cstring>

#include "hwy/cache_control.h"
#include "hwy/highway.h"

#include "kernels/linalg/few_rows.h"

HWY_BEFORE_NAMESPACE();
namespace paddle::cpu::HWY_NAMESPACE {
namespace {
namespace hn = hwy::HWY_NAMESPACE;

using Floats = hn::ScalableTag<float>;
using V = hn::Vec<Floats>;

HWY_INLINE V load(const float* from) { return hn::LoadU(Floats(), from); }
HWY_INLINE V load(const uint16_t* from) {
  const hn::Rebind<hwy::bfloat16_t, Floats> narrow;
  return hn::PromoteTo(Floats(), hn::LoadU(narrow, reinterpret_cast<const hwy::bfloat16_t*>(from)));
}
HWY_INLINE float element(float value) { return value; }
HWY_INLINE float element(uint16_t value) {
  const uint32_t bits = static_cast<uint32_t>(value) << 16;
  float out;
  std::memcpy(&out, &bits, sizeof out);
  return out;
}

/// Adds x[r, at + s] y[at + s, :] to the sums for `count` ≤ kStreams rows s of the matrix, in one
/// pass over the sums.
template <int kStreams, class T>
HWY_INLINE void add_streams(const FewRows<T>& p, int64_t at, int64_t count, int64_t begin,
                            int64_t columns, float* sums, int64_t stride) {
  const Floats d;
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
  const T* row[kStreams];
  for (int64_t s = 0; s < kStreams; ++s)
    row[s] = p.y + (at + std::min(s, count - 1)) * p.y_row + begin;
  float factor[kMaxFewRows][kStreams];
  for (int64_t r = 0; r < p.rows; ++r)
    for (int64_t s = 0; s < kStreams; ++s)
      factor[r][s] = s < count ? element(p.x[r * p.x_row + at + s]) : 0.0f;
  int64_t j = 0;
  if (count == kStreams) {
    // The rows of the next pass, so that they are there when it begins.
    const int64_t ahead = at + 2 * kStreams <= p.k ? kStreams * p.y_row : 0;
    for (; j + lanes <= columns; j += lanes) {
      V y[kStreams];
      for (int s = 0; s < kStreams; ++s) {
        y[s] = load(row[s] + j);
        hwy::Prefetch(row[s] + j + ahead);
      }
      for (int64_t r = 0; r < p.rows; ++r) {
        float* const sum = sums + r * stride + j;
        V total = hn::LoadU(d, sum);
        for (int s = 0; s < kStreams; ++s)
          total = hn::MulAdd(hn::Set(d, factor[r][s]), y[s], total);
        hn::StoreU(total, d, sum);
      }
    }
  }
  for (; j < columns; ++j)
    for (int64_t r = 0; r < p.rows; ++r)
      for (int64_t s = 0; s < count; ++s)
        sums[r * stride + j] =
            __builtin_fmaf(factor[r][s], element(row[s][j]), sums[r * stride + j]);
}

template <int kStreams, class T>
void by_streams(const FewRows<T>& p, int64_t begin, int64_t columns, float* sums, int64_t stride) {
  for (int64_t r = 0; r < p.rows; ++r) std::fill_n(sums + r * stride, columns, 0.0f);
  int64_t at = 0;
  for (; at + kStreams <= p.k; at += kStreams)
    add_streams<kStreams>(p, at, kStreams, begin, columns, sums, stride);
  if (at < p.k) add_streams<kStreams>(p, at, p.k - at, begin, columns, sums, stride);
}

/// Dot products of kRows rows of x, from `r` on, and kColumns columns of the matrix, with kParts
/// partial sums each.
template <int kRows, int kColumns, int kParts, class T>
HWY_INLINE void dots(const FewRows<T>& p, int64_t r, int64_t column, float* sums, int64_t stride) {
  const Floats d;
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
  V part[kRows][kColumns][kParts];
  for (int i = 0; i < kRows; ++i)
    for (int c = 0; c < kColumns; ++c)
      for (int u = 0; u < kParts; ++u) part[i][c][u] = hn::Zero(d);
  const T* const y = p.y + column * p.y_column;
  const T* const x = p.x + r * p.x_row;
  int64_t k = 0;
  for (; k + kParts * lanes <= p.k; k += kParts * lanes)
    for (int u = 0; u < kParts; ++u) {
      V at[kRows];
      for (int i = 0; i < kRows; ++i) at[i] = load(x + i * p.x_row + k + u * lanes);
      for (int c = 0; c < kColumns; ++c) {
        const V value = load(y + c * p.y_column + k + u * lanes);
        for (int i = 0; i < kRows; ++i) part[i][c][u] = hn::MulAdd(at[i], value, part[i][c][u]);
      }
    }
  for (int i = 0; i < kRows; ++i)
    for (int c = 0; c < kColumns; ++c) {
      V all = part[i][c][0];
      for (int u = 1; u < kParts; ++u) all = hn::Add(all, part[i][c][u]);
      float sum = hn::GetLane(hn::SumOfLanes(d, all));
      for (int64_t rest = k; rest < p.k; ++rest)
        sum =
            __builtin_fmaf(element(x[i * p.x_row + rest]), element(y[c * p.y_column + rest]), sum);
      sums[i * stride + c] = sum;
    }
}

template <int kColumns, class T>
HWY_INLINE void all_rows(const FewRows<T>& p, int64_t column, float* sums, int64_t stride) {
  int64_t r = 0;
  for (; r + 4 <= p.rows; r += 4) dots<4, kColumns, 1>(p, r, column, sums + r * stride, stride);
  if (r + 2 <= p.rows) {
    dots<2, kColumns, 2>(p, r, column, sums + r * stride, stride);
    r += 2;
  }
  if (r < p.rows) dots<1, kColumns, 4>(p, r, column, sums + r * stride, stride);
}

template <class T>
void by_dots(const FewRows<T>& p, int64_t begin, int64_t columns, float* sums, int64_t stride) {
  // As many accumulators as there are registers for.
  constexpr int kColumns = hn::MaxLanes(Floats()) >= 16 ? 4 : 2;
  int64_t j = 0;
  for (; j + kColumns <= columns; j += kColumns) all_rows<kColumns>(p, begin + j, sums + j, stride);
  for (; j < columns; ++j) all_rows<1>(p, begin + j, sums + j, stride);
}

template <class T>
void multiply(const FewRows<T>& p, int64_t begin, int64_t columns, float* sums, int64_t stride) {
  if (p.y_column == 1 && p.rows <= 4)
    by_streams<4>(p, begin, columns, sums, stride);
  else if (p.y_column == 1)
    by_streams<8>(p, begin, columns, sums, stride);
  else
    by_dots(p, begin, columns, sums, stride);
}

void multiply_f32(const FewRows<float>& p, int64_t begin, int64_t columns, float* sums,
                  int64_t stride) {
  multiply(p, begin, columns, sums, stride);
}
void multiply_bf16(const FewRows<uint16_t>& p, int64_t begin, int64_t columns, float* sums,
                   int64_t stride) {
  multiply(p, begin, columns, sums, stride);
}

}  // namespace
}  // namespace paddle::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace paddle::cpu {

HWY_EXPORT(multiply_f32);
HWY_EXPORT(multiply_bf16);

void multiply_few_rows(const FewRows<float>& product, int64_t begin, int64_t columns, float* sums,
                       int64_t stride) {
  HWY_DYNAMIC_DISPATCH(multiply_f32)(product, begin, columns, sums, stride);
}
void multiply_few_rows(const FewRows<uint16_t>& product, int64_t begin, int64_t columns,
                       float* sums, int64_t stride) {
  HWY_DYNAMIC_DISPATCH(multiply_bf16)(product, begin, columns, sums, stride);
}

}  // namespace paddle::cpu
#endif
