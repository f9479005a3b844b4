// Vector loops of pooling over planes.

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/pool_loops.cc"
#include "hwy/foreach_target.h"

#include "hwy/highway.h"

#include "kernels/cpu/pool_loops.h"

HWY_BEFORE_NAMESPACE();
namespace paddle::cpu::HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;

/// The larger one, or NaN if either is.
template <class V>
V larger(V a, V b) {
  return hn::IfThenElse(hn::Or(hn::Gt(b, a), hn::IsNaN(b)), b, a);
}

float larger_of(float a, float b) { return b > a || b != b ? b : a; }

/// Whole vectors; gives how many results were written.
template <class D>
int64_t squares(D d, const float* top, const float* bottom, int64_t j, int64_t n, float* out) {
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
  for (; j + lanes <= n; j += lanes) {
    hn::Vec<D> a, b, c, e;
    hn::LoadInterleaved2(d, top + 2 * j, a, b);
    hn::LoadInterleaved2(d, bottom + 2 * j, c, e);
    hn::StoreU(larger(larger(a, b), larger(c, e)), d, out + j);
  }
  return j;
}

template <class T>
void rows_loop(const T* const* rows, int64_t count, int64_t n, T* out) {
  const hn::ScalableTag<T> d;
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
  int64_t i = 0;
  for (; i + lanes <= n; i += lanes) {
    auto most = hn::LoadU(d, rows[0] + i);
    for (int64_t k = 1; k < count; ++k) most = hn::Max(most, hn::LoadU(d, rows[k] + i));
    hn::StoreU(most, d, out + i);
  }
  for (; i < n; ++i) {
    T most = rows[0][i];
    for (int64_t k = 1; k < count; ++k) most = rows[k][i] > most ? rows[k][i] : most;
    out[i] = most;
  }
}

}  // namespace

void unsigned_rows_loop(const uint8_t* const* rows, int64_t count, int64_t n, uint8_t* out) {
  rows_loop(rows, count, n, out);
}
void signed_rows_loop(const int8_t* const* rows, int64_t count, int64_t n, int8_t* out) {
  rows_loop(rows, count, n, out);
}

void largest_of_squares_loop(const float* top, const float* bottom, int64_t n, float* out) {
  // Planes are narrow: what the widest vectors leave goes through shorter ones.
  int64_t j = squares(hn::ScalableTag<float>(), top, bottom, 0, n, out);
  j = squares(hn::CappedTag<float, 8>(), top, bottom, j, n, out);
  j = squares(hn::CappedTag<float, 4>(), top, bottom, j, n, out);
  for (; j < n; ++j)
    out[j] = larger_of(larger_of(top[2 * j], top[2 * j + 1]),
                       larger_of(bottom[2 * j], bottom[2 * j + 1]));
}

}  // namespace paddle::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace paddle::cpu {

HWY_EXPORT(largest_of_squares_loop);
HWY_EXPORT(unsigned_rows_loop);
HWY_EXPORT(signed_rows_loop);

void largest_of_rows(const uint8_t* const* rows, int64_t count, int64_t n, uint8_t* out) {
  HWY_DYNAMIC_DISPATCH(unsigned_rows_loop)(rows, count, n, out);
}
void largest_of_rows(const int8_t* const* rows, int64_t count, int64_t n, int8_t* out) {
  HWY_DYNAMIC_DISPATCH(signed_rows_loop)(rows, count, n, out);
}

void largest_of_squares(const float* top, const float* bottom, int64_t n, float* out) {
  HWY_DYNAMIC_DISPATCH(largest_of_squares_loop)(top, bottom, n, out);
}

}  // namespace paddle::cpu
#endif
