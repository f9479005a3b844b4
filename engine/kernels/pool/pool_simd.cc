// Vector loops of pooling.

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/pool/pool_simd.cc"
#include "hwy/foreach_target.h"

#include <algorithm>

#include "hwy/highway.h"

#include "kernels/pool/pool_simd.h"

HWY_BEFORE_NAMESPACE();
namespace paddle::cpu::HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;

/// The maximum, or NaN if either is NaN.
template <class V>
V larger(V a, V b) {
  return hn::IfThenElse(hn::Or(hn::Gt(b, a), hn::IsNaN(b)), b, a);
}

/// Indices of the upper left elements of the windows from the j-th on.
template <class D>
hn::Vec<D> corners(D d, int32_t first, int64_t j) {
  const auto number = hn::Iota(d, static_cast<int32_t>(j));
  return hn::Add(hn::Set(d, first), hn::Add(number, number));
}

/// Calls `body(d, j)` with the widest vectors that n elements fill; the last vector overlaps the
/// one before it.
template <class Body>
void cover(int64_t n, Body body) {
  const auto with = [&](auto d) {
    const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
    for (int64_t j = 0; j < n; j += lanes) body(d, std::min(j, n - lanes));
  };
  if (n >= static_cast<int64_t>(hn::Lanes(hn::ScalableTag<float>())))
    return with(hn::ScalableTag<float>());
  if (n >= static_cast<int64_t>(hn::Lanes(hn::CappedTag<float, 8>())))
    return with(hn::CappedTag<float, 8>());
  if (n >= static_cast<int64_t>(hn::Lanes(hn::CappedTag<float, 4>())))
    return with(hn::CappedTag<float, 4>());
  return with(hn::CappedTag<float, 1>());
}

template <bool kWithIndices, class D>
void squares(D d, const float* top, const float* bottom, int64_t j, int32_t first, int32_t width,
             float* out, int32_t* indices) {
  const hn::Rebind<int32_t, D> di;
  hn::Vec<D> value, b, c, e;
  hn::LoadInterleaved2(d, top + 2 * j, value, b);
  hn::LoadInterleaved2(d, bottom + 2 * j, c, e);
  if constexpr (!kWithIndices)
    return hn::StoreU(larger(larger(value, b), larger(c, e)), d, out + j);
  const auto here = corners(di, first, j);
  auto index = here;
  const auto take = [&](hn::Vec<D> x, int32_t step) {
    const auto better = hn::Or(hn::Gt(x, value), hn::IsNaN(x));
    value = hn::IfThenElse(better, x, value);
    index = hn::IfThenElse(hn::RebindMask(di, better), hn::Add(here, hn::Set(di, step)), index);
  };
  take(b, 1);
  take(c, width);
  take(e, width + 1);
  hn::StoreU(value, d, out + j);
  hn::StoreU(index, di, indices + j);
}

#if HWY_TARGET == HWY_SCALAR
bool spread(const float* grad, const int32_t* indices, int64_t rows, int64_t n, int32_t width,
            float* out) {
  for (int64_t r = 0; r < rows; ++r)
    for (int64_t j = 0; j < n; ++j) {
      const int64_t corner = 2 * (r * width + j), index = indices[r * n + j];
      bool inside = false;
      for (const int64_t at : {corner, corner + 1, corner + width, corner + width + 1}) {
        out[at] = index == at ? grad[r * n + j] : 0;
        inside |= index == at;
      }
      if (!inside) return false;
    }
  return true;
}
#else
/// Each window's gradient and index are duplicated into two lanes, which are compared with the two
/// pixels of its upper and of its lower row. Processes half a vector of windows at a time; the last
/// one overlaps the one before it. kWhole: there are at least that many.
template <bool kWhole>
bool spread(const float* grad, const int32_t* indices, int64_t rows, int64_t n, int32_t width,
            float* out) {
  const hn::ScalableTag<float> d;
  const hn::ScalableTag<int32_t> di;
  const hn::Half<decltype(d)> half;
  const hn::Half<decltype(di)> half_i;
  const int64_t squares = std::min(n, static_cast<int64_t>(hn::Lanes(half)));
  const auto some = hn::FirstN(half, static_cast<size_t>(squares));
  const auto some_i = hn::FirstN(half_i, static_cast<size_t>(squares));
  const auto some_pixels = hn::FirstN(d, static_cast<size_t>(2 * squares));
  const auto number = hn::Iota(di, 0);
  const auto twice = hn::IndicesFromVec(d, hn::ShiftRight<1>(number));
  const auto twice_i = hn::IndicesFromVec(di, hn::ShiftRight<1>(number));
  size_t found = 0, expected = 0;
  for (int64_t r = 0; r < rows; ++r)
    for (int64_t j = 0; j < n; j += squares) {
      const int64_t at = std::min(j, n - squares), square = r * n + at;
      const int64_t corner = 2 * (r * width + at);
      const auto from =
          kWhole ? hn::LoadU(half, grad + square) : hn::MaskedLoad(some, half, grad + square);
      const auto from_i = kWhole ? hn::LoadU(half_i, indices + square)
                                 : hn::MaskedLoad(some_i, half_i, indices + square);
      const auto value = hn::TableLookupLanes(hn::ZeroExtendVector(d, from), twice);
      const auto index = hn::TableLookupLanes(hn::ZeroExtendVector(di, from_i), twice_i);
      const auto row = [&](int64_t first) {
        const auto here = hn::RebindMask(
            d, hn::Eq(index, hn::Add(number, hn::Set(di, static_cast<int32_t>(first)))));
        const auto pixels = hn::IfThenElseZero(here, value);
        if constexpr (kWhole)
          hn::StoreU(pixels, d, out + first);
        else
          hn::BlendedStore(pixels, some_pixels, d, out + first);
        return hn::CountTrue(d, kWhole ? here : hn::And(here, some_pixels));
      };
      found += row(corner) + row(corner + width);
      expected += static_cast<size_t>(squares);
    }
  return found == expected;  // an index is found at most once
}
#endif

template <class T>
void rows_loop(const T* const* rows, int64_t count, int64_t n, T* out) {
  const hn::ScalableTag<T> d;
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
  int64_t i = 0;
  for (; i + lanes <= n; i += lanes) {
    auto best = hn::LoadU(d, rows[0] + i);
    for (int64_t k = 1; k < count; ++k) best = hn::Max(best, hn::LoadU(d, rows[k] + i));
    hn::StoreU(best, d, out + i);
  }
  for (; i < n; ++i) {
    T best = rows[0][i];
    for (int64_t k = 1; k < count; ++k) best = rows[k][i] > best ? rows[k][i] : best;
    out[i] = best;
  }
}

/// Processes vectors of one width between i and n; returns where they end.
template <class D>
int64_t float_rows(D d, const float* const* rows, const int32_t* row_indices, int64_t count,
                   int64_t i, int64_t n, float* out, int32_t* indices) {
  const hn::Rebind<int32_t, D> di;
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
  for (; i + lanes <= n; i += lanes) {
    auto best = hn::LoadU(d, rows[0] + i);
    if (!indices) {
      for (int64_t k = 1; k < count; ++k) best = larger(best, hn::LoadU(d, rows[k] + i));
    } else {
      auto index = hn::Set(di, row_indices[0]);
      for (int64_t k = 1; k < count; ++k) {
        const auto x = hn::LoadU(d, rows[k] + i);
        const auto better = hn::Or(hn::Gt(x, best), hn::IsNaN(x));
        best = hn::IfThenElse(better, x, best);
        index = hn::IfThenElse(hn::RebindMask(di, better), hn::Set(di, row_indices[k]), index);
      }
      hn::StoreU(index, di, indices + i);
    }
    hn::StoreU(best, d, out + i);
  }
  return i;
}

}  // namespace

bool copy_and_find_nan_loop(const float* x, int64_t n, float* out) {
  int found = 0;
  for (int64_t i = 0; i < n; ++i) {
    found |= x[i] != x[i];
    out[i] = x[i];
  }
  return found != 0;
}

namespace {

/// Of equal elements a.
template <class V>
V first_max(V a, V b) {
  return hn::IfThenElse(hn::Gt(b, a), b, a);
}

template <int kCount>
void max_shifted(const float* x, int64_t shift, int64_t n, float* out) {
  const hn::ScalableTag<float> d;
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
  int64_t i = 0;
  for (; i + lanes <= n; i += lanes) {
    auto best = hn::LoadU(d, x + i);
#pragma GCC unroll 3
    for (int k = 1; k < kCount; ++k) best = first_max(best, hn::LoadU(d, x + i + k * shift));
    hn::StoreU(best, d, out + i);
  }
  for (; i < n; ++i) {
    float best = x[i];
    for (int k = 1; k < kCount; ++k) best = x[i + k * shift] > best ? x[i + k * shift] : best;
    out[i] = best;
  }
}

template <int kCount>
void max_pairs(const float* x, int64_t n, float* out) {
  const hn::ScalableTag<float> d;
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
  int64_t i = 0;
  for (; i + lanes <= n; i += lanes) {
    hn::Vec<decltype(d)> best, odd;
    hn::LoadInterleaved2(d, x + 2 * i, best, odd);
    if constexpr (kCount > 1) best = first_max(best, odd);
    if constexpr (kCount > 2) {
      hn::Vec<decltype(d)> third, fourth;
      hn::LoadInterleaved2(d, x + 2 * i + 2, third, fourth);
      best = first_max(best, third);
      if constexpr (kCount > 3) best = first_max(best, fourth);
    }
    hn::StoreU(best, d, out + i);
  }
  for (; i < n; ++i) {
    float best = x[2 * i];
    for (int k = 1; k < kCount; ++k) best = x[2 * i + k] > best ? x[2 * i + k] : best;
    out[i] = best;
  }
}

}  // namespace

void max_of_shifted_loop(const float* x, int64_t shift, int64_t count, int64_t n, float* out) {
  (count == 2 ? max_shifted<2> : count == 3 ? max_shifted<3> : max_shifted<4>)(x, shift, n, out);
}
void max_of_pairs_loop(const float* x, int64_t count, int64_t n, float* out) {
  (count == 1   ? max_pairs<1>
   : count == 2 ? max_pairs<2>
   : count == 3 ? max_pairs<3>
                : max_pairs<4>)(x, n, out);
}

void float_rows_loop(const float* const* rows, const int32_t* row_indices, int64_t count, int64_t n,
                     float* out, int32_t* indices) {
  int64_t i = float_rows(hn::ScalableTag<float>(), rows, row_indices, count, 0, n, out, indices);
  i = float_rows(hn::CappedTag<float, 4>(), rows, row_indices, count, i, n, out, indices);
  float_rows(hn::CappedTag<float, 1>(), rows, row_indices, count, i, n, out, indices);
}
void unsigned_rows_loop(const uint8_t* const* rows, int64_t count, int64_t n, uint8_t* out) {
  rows_loop(rows, count, n, out);
}
void signed_rows_loop(const int8_t* const* rows, int64_t count, int64_t n, int8_t* out) {
  rows_loop(rows, count, n, out);
}

void max_pool_2x2_loop(const float* x, int32_t width, int64_t rows, int64_t n, float* out,
                       int32_t* indices) {
  for (int64_t r = 0; r < rows; ++r) {
    const float* const top = x + 2 * r * width;
    const auto first = static_cast<int32_t>(2 * r * width);
    cover(n, [&](auto d, int64_t j) {
      if (indices)
        squares<true>(d, top, top + width, j, first, width, out + r * n, indices + r * n);
      else
        squares<false>(d, top, top + width, j, first, width, out + r * n, nullptr);
    });
  }
}

bool max_pool_2x2_grad_loop(const float* grad, const int32_t* indices, int64_t rows, int64_t n,
                            int32_t width, float* out) {
#if HWY_TARGET == HWY_SCALAR
  return spread(grad, indices, rows, n, width, out);
#else
  const bool is_full = 2 * n >= static_cast<int64_t>(hn::Lanes(hn::ScalableTag<float>()));
  return (is_full ? spread<true> : spread<false>)(grad, indices, rows, n, width, out);
#endif
}

}  // namespace paddle::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace paddle::cpu {

HWY_EXPORT(max_pool_2x2_loop);
HWY_EXPORT(max_pool_2x2_grad_loop);
HWY_EXPORT(float_rows_loop);
HWY_EXPORT(unsigned_rows_loop);
HWY_EXPORT(signed_rows_loop);
HWY_EXPORT(copy_and_find_nan_loop);
HWY_EXPORT(max_of_shifted_loop);
HWY_EXPORT(max_of_pairs_loop);

bool copy_and_find_nan(const float* x, int64_t n, float* out) {
  return HWY_DYNAMIC_DISPATCH(copy_and_find_nan_loop)(x, n, out);
}
void max_of_shifted(const float* x, int64_t shift, int64_t count, int64_t n, float* out) {
  HWY_DYNAMIC_DISPATCH(max_of_shifted_loop)(x, shift, count, n, out);
}
void max_of_pairs(const float* x, int64_t count, int64_t n, float* out) {
  HWY_DYNAMIC_DISPATCH(max_of_pairs_loop)(x, count, n, out);
}

void max_of_rows(const uint8_t* const* rows, int64_t count, int64_t n, uint8_t* out) {
  HWY_DYNAMIC_DISPATCH(unsigned_rows_loop)(rows, count, n, out);
}
void max_of_rows(const int8_t* const* rows, int64_t count, int64_t n, int8_t* out) {
  HWY_DYNAMIC_DISPATCH(signed_rows_loop)(rows, count, n, out);
}

void max_of_rows(const float* const* rows, const int32_t* row_indices, int64_t count, int64_t n,
                 float* out, int32_t* indices) {
  HWY_DYNAMIC_DISPATCH(float_rows_loop)(rows, row_indices, count, n, out, indices);
}

void max_pool_2x2(const float* x, int32_t width, int64_t rows, int64_t n, float* out,
                  int32_t* indices) {
  HWY_DYNAMIC_DISPATCH(max_pool_2x2_loop)(x, width, rows, n, out, indices);
}

bool max_pool_2x2_grad(const float* grad, const int32_t* indices, int64_t rows, int64_t n,
                       int32_t width, float* out) {
  return HWY_DYNAMIC_DISPATCH(max_pool_2x2_grad_loop)(grad, indices, rows, n, width, out);
}

}  // namespace paddle::cpu
#endif
