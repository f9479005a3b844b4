// Vector loops of CHWN convolution.

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/conv/chwn_simd.cc"
#include "hwy/foreach_target.h"

#include <algorithm>
#include <array>
#include <utility>

#include "hwy/highway.h"

#include "kernels/conv/chwn_simd.h"

HWY_BEFORE_NAMESPACE();
namespace paddle::cpu::HWY_NAMESPACE {
namespace {
namespace hn = hwy::HWY_NAMESPACE;

using D = hn::ScalableTag<float>;
using V = hn::Vec<D>;

// Sums that stay in registers: `row` outputs times vectors, `products` outputs times taps.
#if HWY_TARGET == HWY_SCALAR || HWY_TARGET == HWY_AVX2
constexpr int kRowOutputs = 6, kProductsOutputs = 2, kProductsTaps = 6;
#else
constexpr int kRowOutputs = 8, kProductsOutputs = 4, kProductsTaps = 6;
#endif

int64_t lanes() { return static_cast<int64_t>(hn::Lanes(D())); }

constexpr int64_t kTransposeSize = 4;  // images, and pixels, that are transposed at once

#if HWY_TARGET != HWY_SCALAR

/// The k-th group of four floats of the vector is loaded from from + k * stride.
template <class T>
HWY_INLINE hn::Vec<T> load_blocks(T d, const float* from, int64_t stride) {
  if constexpr (hn::MaxLanes(T()) == kTransposeSize) {
    return hn::LoadU(d, from);
  } else {
    const hn::Half<T> half;
    const int64_t above = static_cast<int64_t>(hn::MaxLanes(half)) / kTransposeSize * stride;
    return hn::Combine(d, load_blocks(half, from + above, stride), load_blocks(half, from, stride));
  }
}

template <class T>
HWY_INLINE void store_blocks(T d, hn::Vec<T> v, float* to, int64_t stride) {
  if constexpr (hn::MaxLanes(T()) == kTransposeSize) {
    hn::StoreU(v, d, to);
  } else {
    const hn::Half<T> half;
    const int64_t above = static_cast<int64_t>(hn::MaxLanes(half)) / kTransposeSize * stride;
    store_blocks(half, hn::LowerHalf(half, v), to, stride);
    store_blocks(half, hn::UpperHalf(half, v), to + above, stride);
  }
}

/// Transposes the k-th 4 × 4 squares of four vectors, for all k.
template <class T>
HWY_INLINE void transpose_blocks(T d, hn::Vec<T>* v) {
  const hn::RepartitionToWide<T> wide;
  const auto pair = [&](hn::Vec<T> a, hn::Vec<T> b, hn::Vec<T>* out) {
    const auto wa = hn::BitCast(wide, a), wb = hn::BitCast(wide, b);
    out[0] = hn::BitCast(d, hn::InterleaveLower(wide, wa, wb));
    out[1] = hn::BitCast(d, hn::InterleaveUpper(wide, wa, wb));
  };
  const auto a = hn::InterleaveLower(d, v[0], v[1]), b = hn::InterleaveLower(d, v[2], v[3]);
  const auto c = hn::InterleaveUpper(d, v[0], v[1]), e = hn::InterleaveUpper(d, v[2], v[3]);
  pair(a, b, v);
  pair(c, e, v + 2);
}

/// Four pixels of as many images as the vector has lanes.
template <class T>
HWY_INLINE void gather_block(T d, const float* from, int64_t stride, float* to, int64_t pitch) {
  hn::Vec<T> v[kTransposeSize];
  for (int i = 0; i < kTransposeSize; ++i)
    v[i] = load_blocks(d, from + i * stride, kTransposeSize * stride);
  transpose_blocks(d, v);
  for (int i = 0; i < kTransposeSize; ++i) hn::StoreU(v[i], d, to + i * pitch);
}

template <class T>
HWY_INLINE void scatter_block(T d, const float* from, int64_t pitch, float* to, int64_t stride) {
  hn::Vec<T> v[kTransposeSize];
  for (int i = 0; i < kTransposeSize; ++i) v[i] = hn::LoadU(d, from + i * pitch);
  transpose_blocks(d, v);
  for (int i = 0; i < kTransposeSize; ++i)
    store_blocks(d, v[i], to + i * stride, kTransposeSize * stride);
}

#endif

/// As many images as the vector has lanes.
template <class T>
void gather_images(T d, const float* from, int64_t stride, int64_t pixels, float* to,
                   int64_t pitch) {
  int64_t p = 0;
  if constexpr (hn::MaxLanes(T()) >= kTransposeSize)
    for (; p + kTransposeSize <= pixels; p += kTransposeSize)
      gather_block(d, from + p, stride, to + p * pitch, pitch);
  for (; p < pixels; ++p)
    for (int64_t n = 0; n < static_cast<int64_t>(hn::Lanes(d)); ++n)
      to[p * pitch + n] = from[n * stride + p];
}

template <class T>
void scatter_images(T d, const float* from, int64_t pitch, int64_t pixels, float* to,
                    int64_t stride) {
  int64_t p = 0;
  if constexpr (hn::MaxLanes(T()) >= kTransposeSize)
    for (; p + kTransposeSize <= pixels; p += kTransposeSize)
      scatter_block(d, from + p * pitch, pitch, to + p, stride);
  for (; p < pixels; ++p)
    for (int64_t n = 0; n < static_cast<int64_t>(hn::Lanes(d)); ++n)
      to[n * stride + p] = from[p * pitch + n];
}

/// Calls `body(d, first)` for groups of images, with the widest vectors that the remaining images
/// fill.
template <class Body>
void for_each_vector(int64_t images, Body body) {
  int64_t n = 0;
  const auto take = [&](auto d) {
    const int64_t count = static_cast<int64_t>(hn::Lanes(d));
    for (; n + count <= images; n += count) body(d, n);
  };
  take(D());
  take(hn::CappedTag<float, kTransposeSize>());
  take(hn::CappedTag<float, 1>());
}

void gather(const float* from, int64_t stride, int64_t images, int64_t pixels, float* to,
            int64_t pitch) {
  const D d;
  for (int64_t p = 0; images < lanes() && p < pixels; ++p)
    hn::StoreU(hn::Zero(d), d, to + p * pitch);
  for_each_vector(images, [&](auto part, int64_t n) {
    gather_images(part, from + n * stride, stride, pixels, to + n, pitch);
  });
}

void scatter(const float* from, int64_t pitch, int64_t images, int64_t pixels, float* to,
             int64_t stride) {
  for_each_vector(images, [&](auto d, int64_t n) {
    scatter_images(d, from + n, pitch, pixels, to + n * stride, stride);
  });
}

template <int kVectors, int kOutputs>
void row_of(const ChwnRow& row, const float* bias, float clamp_min, float* y, int64_t pitch) {
  const D d;
  const V low = hn::Set(d, clamp_min);
  const int64_t pixel = kVectors * lanes();
  const int64_t x_column = row.channels * pixel, w_column = row.channels * kOutputs;
  for (int64_t c = 0; c < row.out_width; ++c, y += pixel) {
    const int64_t column = c * row.stride - row.left;
    const int64_t first = std::max<int64_t>(0, -column);
    const int64_t last = std::min(row.kernel_width, row.width - column);
    const int64_t depth = (last - first) * row.channels;
    V sum[kOutputs][kVectors];
#pragma GCC unroll 8
    for (int o = 0; o < kOutputs; ++o)
#pragma GCC unroll 2
      for (int v = 0; v < kVectors; ++v) sum[o][v] = bias ? hn::Set(d, bias[o]) : hn::Zero(d);
    for (int64_t r = 0; depth > 0 && r < row.rows; ++r) {
      const float* x = row.x + r * row.row_stride + (column + first) * x_column;
      const float* w = row.weight + (r * row.kernel_width + first) * w_column;
      for (int64_t i = 0; i < depth; ++i, x += pixel, w += kOutputs) {
        V value[kVectors];
#pragma GCC unroll 2
        for (int v = 0; v < kVectors; ++v) value[v] = hn::LoadU(d, x + v * lanes());
#pragma GCC unroll 8
        for (int o = 0; o < kOutputs; ++o) {
          const V factor = hn::Set(d, w[o]);
#pragma GCC unroll 2
          for (int v = 0; v < kVectors; ++v) sum[o][v] = hn::MulAdd(factor, value[v], sum[o][v]);
        }
      }
    }
#pragma GCC unroll 8
    for (int o = 0; o < kOutputs; ++o)
#pragma GCC unroll 2
      for (int v = 0; v < kVectors; ++v)
        hn::StoreU(hn::IfThenElse(hn::Lt(sum[o][v], low), low, sum[o][v]), d,
                   y + o * pitch + v * lanes());  // propagates NaN
  }
}

template <int kOutputs, int kTaps>
void products_of(const ChwnWeightTile& part) {
  const D d;
  const int64_t n = lanes();
  V sum[kTaps][kOutputs];
#pragma GCC unroll 6
  for (int t = 0; t < kTaps; ++t)
#pragma GCC unroll 4
    for (int o = 0; o < kOutputs; ++o)
      sum[t][o] = hn::LoadU(d, part.sums + o * part.sums_stride + t * n);
  for (int64_t r = 0; r < part.rows; ++r) {
    const float* dy = part.dy + r * part.dy_row;
    const float* x = part.x + r * part.x_row;
    for (int64_t c = 0; c < part.columns; ++c, dy += part.dy_column, x += part.x_column) {
      V grad[kOutputs];
#pragma GCC unroll 4
      for (int o = 0; o < kOutputs; ++o) grad[o] = hn::LoadU(d, dy + o * n);
#pragma GCC unroll 6
      for (int t = 0; t < kTaps; ++t) {
        const V value = hn::LoadU(d, x + t * n);
#pragma GCC unroll 4
        for (int o = 0; o < kOutputs; ++o) sum[t][o] = hn::MulAdd(value, grad[o], sum[t][o]);
      }
    }
  }
#pragma GCC unroll 6
  for (int t = 0; t < kTaps; ++t)
#pragma GCC unroll 4
    for (int o = 0; o < kOutputs; ++o)
      hn::StoreU(sum[t][o], d, part.sums + o * part.sums_stride + t * n);
}

/// functions[i] is for i + 1 outputs.
template <int kVectors, size_t... kIndex>
constexpr auto row_functions(std::index_sequence<kIndex...>) {
  return std::array{&row_of<kVectors, static_cast<int>(kIndex) + 1>...};
}
template <int kOutputs, size_t... kIndex>
constexpr auto products_functions(std::index_sequence<kIndex...>) {
  return std::array{&products_of<kOutputs, static_cast<int>(kIndex) + 1>...};
}
template <size_t... kIndex>
constexpr auto products_functions(std::index_sequence<kIndex...>) {
  return std::array{products_functions<static_cast<int>(kIndex) + 1>(
      std::make_index_sequence<static_cast<size_t>(kProductsTaps)>())...};
}

void row(const ChwnRow& row, const float* bias, float clamp_min, float* y, int64_t pitch) {
  constexpr std::make_index_sequence<static_cast<size_t>(kRowOutputs)> outputs;
  static constexpr std::array functions = {row_functions<1>(outputs), row_functions<2>(outputs)};
  functions[static_cast<size_t>(row.vectors - 1)][static_cast<size_t>(row.outputs - 1)](
      row, bias, clamp_min, y, pitch);
}

void products(const ChwnWeightTile& part, int64_t outputs, int64_t taps) {
  static constexpr auto functions =
      products_functions(std::make_index_sequence<static_cast<size_t>(kProductsOutputs)>());
  functions[static_cast<size_t>(outputs - 1)][static_cast<size_t>(taps - 1)](part);
}

void sum_over_batch(const float* sums, int64_t parts, int64_t part_stride, int64_t count,
                    float* out, int64_t out_stride) {
  const D d;
  for (int64_t i = 0; i < count; ++i) {
    V sum = hn::LoadU(d, sums + i * lanes());
    for (int64_t k = 1; k < parts; ++k)
      sum = hn::Add(sum, hn::LoadU(d, sums + k * part_stride + i * lanes()));
    out[i * out_stride] = hn::GetLane(hn::SumOfLanes(d, sum));
  }
}

}  // namespace

const ChwnLoops* chwn_loops_of_target() {
  static const ChwnLoops loops = {lanes(), kRowOutputs, kProductsOutputs, kProductsTaps, gather,
                                  scatter, row,         products,         sum_over_batch};
  return &loops;
}

}  // namespace paddle::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace paddle::cpu {

HWY_EXPORT(chwn_loops_of_target);

const ChwnLoops& chwn_loops() { return *HWY_DYNAMIC_DISPATCH(chwn_loops_of_target)(); }

}  // namespace paddle::cpu
#endif
