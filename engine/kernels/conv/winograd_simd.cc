// Vector loops of Winograd convolution: tile transforms over vectors of channels, and the GEMM of
// transformed inputs with packed weights.

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/conv/winograd_simd.cc"
#include "hwy/foreach_target.h"

#include <algorithm>
#include <cstring>

#include "hwy/highway.h"

#include "kernels/conv/winograd_simd.h"

HWY_BEFORE_NAMESPACE();
namespace paddle::cpu::HWY_NAMESPACE {
namespace {
namespace hn = hwy::HWY_NAMESPACE;

using D = hn::ScalableTag<float>;
using V = hn::Vec<D>;

#if HWY_TARGET == HWY_SCALAR || HWY_TARGET == HWY_AVX2
constexpr int kPanelVectors = 2, kRegisters = 12;
#else
constexpr int kPanelVectors = 4, kRegisters = 24;
#endif

HWY_INLINE V constant(double value) { return hn::Set(D(), static_cast<float>(value)); }

/// out = G in.
template <int kTile>
HWY_INLINE void transform_weight_1d(const V* in, V* out) {
  out[0] = in[0];
  out[kTile + 1] = in[2];
  if constexpr (kTile == 2) {
    const V even = hn::Mul(constant(0.5), hn::Add(in[0], in[2]));
    const V odd = hn::Mul(constant(0.5), in[1]);
    out[1] = hn::Add(even, odd);
    out[2] = hn::Sub(even, odd);
  } else {
    constexpr double a = kWinogradNear, b = kWinogradFar;
    out[0] = hn::Mul(constant(1 / (a * a * b * b)), in[0]);
    const auto pair = [&](double at, double other, V* pair_out) {
      const double factor = 1 / (2 * at * at * (at * at - other * other));
      const V even =
          hn::MulAdd(constant(factor * at * at), in[2], hn::Mul(constant(factor), in[0]));
      const V odd = hn::Mul(constant(factor * at), in[1]);
      pair_out[0] = hn::Add(even, odd);
      pair_out[1] = hn::Sub(even, odd);
    };
    pair(a, b, out + 1);
    pair(b, a, out + 3);
  }
}

template <int kTile>
void weight(const std::byte* w, int64_t stride, int64_t panel, float* u, int64_t pitch) {
  constexpr int kSize = kTile + 2;
  const D d;
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
  for (int64_t first = 0; first < panel; first += lanes, u += lanes, w += lanes * stride) {
    HWY_ALIGN float windows[9][hn::MaxLanes(D())];
    for (int64_t k = 0; k < lanes; ++k) {
      float window[9];  // mapped files may hold weights at any address
      std::memcpy(window, w + k * stride, sizeof window);
      for (int i = 0; i < 9; ++i) windows[i][k] = window[i];
    }
    V columns[3][kSize];
    for (int j = 0; j < 3; ++j) {
      V in[3];
      for (int i = 0; i < 3; ++i) in[i] = hn::Load(d, windows[i * 3 + j]);
      transform_weight_1d<kTile>(in, columns[j]);
    }
    for (int i = 0; i < kSize; ++i) {
      const V in[3] = {columns[0][i], columns[1][i], columns[2][i]};
      V out[kSize];
      transform_weight_1d<kTile>(in, out);
      for (int j = 0; j < kSize; ++j) hn::StoreU(out[j], d, u + (i * kSize + j) * pitch);
    }
  }
}

/// out = Bᵀ in.
template <int kTile>
HWY_INLINE void transform_input(const V* in, V* out) {
  if constexpr (kTile == 2) {
    out[0] = hn::Sub(in[0], in[2]);
    out[1] = hn::Add(in[1], in[2]);
    out[2] = hn::Sub(in[2], in[1]);
    out[3] = hn::Sub(in[3], in[1]);
  } else {
    constexpr double a = kWinogradNear * kWinogradNear, b = kWinogradFar * kWinogradFar;
    const V ab = constant(a * b), sum = constant(a + b);
    out[0] = hn::Add(hn::NegMulAdd(sum, in[2], hn::Mul(ab, in[0])), in[4]);
    out[5] = hn::Add(hn::NegMulAdd(sum, in[3], hn::Mul(ab, in[1])), in[5]);
    const V even_near = hn::NegMulAdd(constant(b), in[2], in[4]);
    const V odd_near = hn::Mul(constant(kWinogradNear), hn::NegMulAdd(constant(b), in[1], in[3]));
    out[1] = hn::Add(even_near, odd_near);
    out[2] = hn::Sub(even_near, odd_near);
    const V even_far = hn::NegMulAdd(constant(a), in[2], in[4]);
    const V odd_far = hn::Mul(constant(kWinogradFar), hn::NegMulAdd(constant(a), in[1], in[3]));
    out[3] = hn::Add(even_far, odd_far);
    out[4] = hn::Sub(even_far, odd_far);
  }
}

/// out = Aᵀ in.
template <int kTile>
HWY_INLINE void transform_output(const V* in, V* out) {
  if constexpr (kTile == 2) {
    out[0] = hn::Add(in[0], hn::Add(in[1], in[2]));
    out[1] = hn::Add(in[3], hn::Sub(in[1], in[2]));
  } else {
    constexpr double a = kWinogradNear, b = kWinogradFar;
    const V near = hn::Add(in[1], in[2]), far = hn::Add(in[3], in[4]);
    const V near_odd = hn::Sub(in[1], in[2]), far_odd = hn::Sub(in[3], in[4]);
    out[0] = hn::Add(in[0], hn::Add(near, far));
    out[1] = hn::MulAdd(constant(a), near_odd, hn::Mul(constant(b), far_odd));
    out[2] = hn::MulAdd(constant(a * a), near, hn::Mul(constant(b * b), far));
    out[3] = hn::Add(
        in[5], hn::MulAdd(constant(a * a * a), near_odd, hn::Mul(constant(b * b * b), far_odd)));
  }
}

template <int kTile, bool kWhole>
void input_tile(const float* x, int64_t first, int64_t stride, const WinogradWindow& w,
                int64_t tile, const WinogradPoints& points) {
  constexpr int kSize = kTile + 2;
  const D d;
  const int64_t channels = points.channels;
  float* const to = points.data + tile * channels;
  for (int64_t c = 0; c < channels; c += static_cast<int64_t>(hn::Lanes(d))) {
    V columns[kSize][kSize];  // [column][point of the rows]
    for (int j = 0; j < kSize; ++j) {
      V in[kSize];
      const bool is_inside = kWhole || (j >= w.first_column && j < w.first_column + w.columns);
      for (int i = 0; i < kSize; ++i) {
        if (kWhole || (is_inside && i >= w.first_row && i < w.first_row + w.rows))
          in[i] = hn::LoadU(d, x + (first + i * stride + j * channels + c));
        else
          in[i] = hn::Zero(d);
      }
      transform_input<kTile>(in, columns[j]);
    }
    for (int i = 0; i < kSize; ++i) {
      V in[kSize], out[kSize];
      for (int j = 0; j < kSize; ++j) in[j] = columns[j][i];
      transform_input<kTile>(in, out);
      for (int j = 0; j < kSize; ++j)
        hn::StoreU(out[j], d, to + (i * kSize + j) * points.pitch + c);
    }
  }
}

template <int kTile>
void input(const float* x, int64_t first, int64_t stride, const WinogradWindow& w, int64_t tile,
           const WinogradPoints& points) {
  const bool is_interior = w.rows == kTile + 2 && w.columns == kTile + 2;
  (is_interior ? &input_tile<kTile, true> : &input_tile<kTile, false>)(x, first, stride, w, tile,
                                                                       points);
}

template <int kTile>
void output(const WinogradPoints& points, int64_t tile, int64_t channels, const float* bias,
            const float* residual, float clamp_min, float* y, int64_t stride,
            const WinogradWindow& w) {
  constexpr int kSize = kTile + 2;
  const D d;
  const V low = hn::Set(d, clamp_min);
  const float* const from = points.data + tile * points.channels;
  for (int64_t c = 0; c < channels; c += static_cast<int64_t>(hn::Lanes(d))) {
    V rows[kSize][kTile];  // [point of the rows][pixel of the columns]
    for (int i = 0; i < kSize; ++i) {
      V in[kSize];
      for (int j = 0; j < kSize; ++j)
        in[j] = hn::LoadU(d, from + (i * kSize + j) * points.pitch + c);
      transform_output<kTile>(in, rows[i]);
    }
    const V shift = bias ? hn::LoadU(d, bias + c) : hn::Zero(d);
    for (int j = 0; j < kTile && j < w.columns; ++j) {
      V in[kSize], out[kTile];
      for (int i = 0; i < kSize; ++i) in[i] = rows[i][j];
      transform_output<kTile>(in, out);
      for (int i = 0; i < kTile && i < w.rows; ++i) {
        const int64_t at = i * stride + j * channels + c;
        V value = hn::Add(out[i], shift);
        if (residual) value = hn::Add(value, hn::LoadU(d, residual + at));
        hn::StoreU(hn::Max(low, value), d, y + at);  // propagates NaN
      }
    }
  }
}

template <int kRows, int kVectors>
HWY_INLINE void product_rows(int64_t planes, int64_t depth, const float* a, int64_t plane_stride,
                             const float* u, float* c, int64_t c_stride) {
  const D d;
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
  V sum[kRows][kVectors];
#pragma GCC unroll 24
  for (int r = 0; r < kRows; ++r)
#pragma GCC unroll 4
    for (int v = 0; v < kVectors; ++v) sum[r][v] = hn::Zero(d);
  for (int64_t plane = 0; plane < planes; ++plane, a += plane_stride)
    for (int64_t i = 0; i < depth; ++i) {
      V b[kVectors];
#pragma GCC unroll 4
      for (int v = 0; v < kVectors; ++v) b[v] = hn::LoadU(d, u + v * lanes);
#pragma GCC unroll 24
      for (int r = 0; r < kRows; ++r) {
        const V ar = hn::Set(d, a[r * depth + i]);
#pragma GCC unroll 4
        for (int v = 0; v < kVectors; ++v) sum[r][v] = hn::MulAdd(ar, b[v], sum[r][v]);
      }
      u += kVectors * lanes;
    }
#pragma GCC unroll 24
  for (int r = 0; r < kRows; ++r)
#pragma GCC unroll 4
    for (int v = 0; v < kVectors; ++v) hn::StoreU(sum[r][v], d, c + r * c_stride + v * lanes);
}

template <int kVectors>
void product_panel(int64_t tiles, int64_t planes, int64_t depth, const float* a,
                   int64_t plane_stride, const float* u, float* c, int64_t c_stride) {
  constexpr int kRows = std::min(kRegisters / kVectors, 12);
  int64_t t = 0;
  for (; t + kRows <= tiles; t += kRows)
    product_rows<kRows, kVectors>(planes, depth, a + t * depth, plane_stride, u, c + t * c_stride,
                                  c_stride);
  for (; t + 3 <= tiles; t += 3)
    product_rows<3, kVectors>(planes, depth, a + t * depth, plane_stride, u, c + t * c_stride,
                              c_stride);
  for (; t < tiles; ++t)
    product_rows<1, kVectors>(planes, depth, a + t * depth, plane_stride, u, c + t * c_stride,
                              c_stride);
}

void product(int64_t tiles, int64_t planes, int64_t depth, const float* a, int64_t plane_stride,
             const float* u, int64_t panel, float* c, int64_t c_stride) {
  switch (panel / static_cast<int64_t>(hn::Lanes(D()))) {
    case 1:
      return product_panel<1>(tiles, planes, depth, a, plane_stride, u, c, c_stride);
    case 2:
      return product_panel<2>(tiles, planes, depth, a, plane_stride, u, c, c_stride);
    case 3:
      return product_panel<3>(tiles, planes, depth, a, plane_stride, u, c, c_stride);
    default:
      return product_panel<kPanelVectors>(tiles, planes, depth, a, plane_stride, u, c, c_stride);
  }
}

}  // namespace

const WinogradLoops* winograd_loops_of_target(int64_t tile) {
  static const int64_t panel = kPanelVectors * static_cast<int64_t>(hn::Lanes(D()));
  static const WinogradLoops two = {panel, weight<2>, input<2>, product, output<2>};
  static const WinogradLoops four = {panel, weight<4>, input<4>, product, output<4>};
  return tile == 2 ? &two : &four;
}

}  // namespace paddle::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace paddle::cpu {

HWY_EXPORT(winograd_loops_of_target);

const WinogradLoops& winograd_loops(int64_t tile) {
  return *HWY_DYNAMIC_DISPATCH(winograd_loops_of_target)(tile);
}

}  // namespace paddle::cpu
#endif
