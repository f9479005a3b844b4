// Distances between rows from their differences, so that close rows lose no digits. A tile of four
// rows of x and two vectors of rows of y stays in registers.

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/reduce/distances_simd.cc"
#include "hwy/foreach_target.h"

#include <algorithm>
#include <cstdint>

#include "hwy/highway.h"

#include "kernels/reduce/distances_simd.h"

HWY_BEFORE_NAMESPACE();
namespace paddle::cpu::HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;

template <class T>
using D = hn::ScalableTag<T>;
template <class T>
using V = hn::Vec<D<T>>;

constexpr int64_t kRows = 4, kVectors = 2;

template <class T>
HWY_INLINE int64_t lanes() {
  return static_cast<int64_t>(hn::Lanes(D<T>()));
}
template <class T>
constexpr int64_t kMaxColumns = kVectors* static_cast<int64_t>(hn::MaxLanes(D<T>()));

template <class T>
void pack(const T* y, int64_t rows, int64_t size, T* panel) {
  const int64_t width = kVectors * lanes<T>();
  for (int64_t j = 0; j < width; ++j)
    for (int64_t k = 0; k < size; ++k) panel[k * width + j] = j < rows ? y[j * size + k] : T(0);
}

/// Sums of squares for kCount rows of x over the whole panel, square roots of them.
template <int64_t kCount, class T>
HWY_INLINE void distance_tile(const T* x, const T* panel, int64_t size, T* out) {
  const D<T> d;
  const int64_t step = lanes<T>();
  V<T> total[kCount][kVectors];
  for (auto& row : total)
    for (V<T>& sum : row) sum = hn::Zero(d);
  for (int64_t begin = 0; begin < size; begin += kDistancePart) {
    V<T> part[kCount][kVectors];
    for (auto& row : part)
      for (V<T>& sum : row) sum = hn::Zero(d);
    const int64_t end = std::min(size, begin + kDistancePart);
    for (int64_t k = begin; k < end; ++k) {
      const V<T> a = hn::LoadU(d, panel + k * kVectors * step);
      const V<T> b = hn::LoadU(d, panel + (k * kVectors + 1) * step);
      for (int64_t i = 0; i < kCount; ++i) {
        const V<T> value = hn::Set(d, x[i * size + k]);
        const V<T> to_a = hn::Sub(value, a), to_b = hn::Sub(value, b);
        part[i][0] = hn::MulAdd(to_a, to_a, part[i][0]);
        part[i][1] = hn::MulAdd(to_b, to_b, part[i][1]);
      }
    }
    for (int64_t i = 0; i < kCount; ++i)
      for (int64_t v = 0; v < kVectors; ++v) total[i][v] = hn::Add(total[i][v], part[i][v]);
  }
  for (int64_t i = 0; i < kCount; ++i)
    for (int64_t v = 0; v < kVectors; ++v)
      hn::StoreU(hn::Sqrt(total[i][v]), d, out + (i * kVectors + v) * step);
}

template <class T>
void distances(const T* x, int64_t rows, const T* panel, int64_t columns, int64_t size, T* out,
               int64_t stride) {
  HWY_ALIGN T tile[kRows * kMaxColumns<T>];
  const int64_t width = kVectors * lanes<T>();
  for (int64_t i = 0; i < rows;) {
    const int64_t count = rows - i >= kRows ? kRows : 1;
    if (count == kRows)
      distance_tile<kRows>(x + i * size, panel, size, tile);
    else
      distance_tile<1>(x + i * size, panel, size, tile);
    for (int64_t r = 0; r < count; ++r)
      std::copy_n(tile + r * width, columns, out + (i + r) * stride);
    i += count;
  }
}

/// Elements k, k + 1, … of kCount rows, kWidth vectors of them.
template <int64_t kCount, int64_t kWidth, class T>
HWY_INLINE void weighted_tile(const T* x, const T* y, const T* weight, int64_t count, int64_t size,
                              T* out) {
  const D<T> d;
  const int64_t step = lanes<T>();
  V<T> total[kCount][kWidth], from[kCount][kWidth];
  for (int64_t i = 0; i < kCount; ++i)
    for (int64_t v = 0; v < kWidth; ++v) {
      total[i][v] = hn::Zero(d);
      from[i][v] = hn::LoadU(d, x + i * size + v * step);
    }
  for (int64_t begin = 0; begin < count; begin += kDistancePart) {
    V<T> part[kCount][kWidth];
    for (auto& row : part)
      for (V<T>& sum : row) sum = hn::Zero(d);
    const int64_t end = std::min(count, begin + kDistancePart);
    for (int64_t j = begin; j < end; ++j) {
      V<T> to[kWidth];
      for (int64_t v = 0; v < kWidth; ++v) to[v] = hn::LoadU(d, y + j * size + v * step);
      for (int64_t i = 0; i < kCount; ++i) {
        const V<T> w = hn::Set(d, weight[i * count + j]);
        for (int64_t v = 0; v < kWidth; ++v)
          part[i][v] = hn::MulAdd(w, hn::Sub(from[i][v], to[v]), part[i][v]);
      }
    }
    for (int64_t i = 0; i < kCount; ++i)
      for (int64_t v = 0; v < kWidth; ++v) total[i][v] = hn::Add(total[i][v], part[i][v]);
  }
  for (int64_t i = 0; i < kCount; ++i)
    for (int64_t v = 0; v < kWidth; ++v) hn::StoreU(total[i][v], d, out + i * size + v * step);
}

/// Elements [from, size) of rows, one by one.
template <class T>
void weighted_rest(const T* x, int64_t rows, const T* y, const T* weight, int64_t count,
                   int64_t size, int64_t from, T* out) {
  for (int64_t i = 0; i < rows; ++i)
    for (int64_t k = from; k < size; ++k) {
      T total = 0;
      for (int64_t begin = 0; begin < count; begin += kDistancePart) {
        T part = 0;
        const int64_t end = std::min(count, begin + kDistancePart);
        for (int64_t j = begin; j < end; ++j)
          part += weight[i * count + j] * (x[i * size + k] - y[j * size + k]);
        total += part;
      }
      out[i * size + k] = total;
    }
}

template <int64_t kCount, class T>
HWY_INLINE void weighted_rows(const T* x, const T* y, const T* weight, int64_t count, int64_t size,
                              T* out) {
  const int64_t step = lanes<T>();
  int64_t k = 0;
  for (; k + kVectors * step <= size; k += kVectors * step)
    weighted_tile<kCount, kVectors>(x + k, y + k, weight, count, size, out + k);
  for (; k + step <= size; k += step)
    weighted_tile<kCount, 1>(x + k, y + k, weight, count, size, out + k);
  weighted_rest(x, kCount, y, weight, count, size, k, out);
}

template <class T>
void weighted(const T* x, int64_t rows, const T* y, const T* weight, int64_t count, int64_t size,
              T* out) {
  int64_t i = 0;
  for (; i + kRows <= rows; i += kRows)
    weighted_rows<kRows>(x + i * size, y, weight + i * count, count, size, out + i * size);
  for (; i < rows; ++i)
    weighted_rows<1>(x + i * size, y, weight + i * count, count, size, out + i * size);
}

template <class T>
DistanceLoops<T> loops() {
  return {kVectors * lanes<T>(), &pack<T>, &distances<T>, &weighted<T>};
}

}  // namespace

DistanceLoops<float> distance_loops_f32() { return loops<float>(); }
DistanceLoops<double> distance_loops_f64() { return loops<double>(); }

}  // namespace paddle::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace paddle::cpu {

HWY_EXPORT(distance_loops_f32);
HWY_EXPORT(distance_loops_f64);

template <>
DistanceLoops<float> distance_loops<float>() {
  return HWY_DYNAMIC_DISPATCH(distance_loops_f32)();
}
template <>
DistanceLoops<double> distance_loops<double>() {
  return HWY_DYNAMIC_DISPATCH(distance_loops_f64)();
}

}  // namespace paddle::cpu
#endif
