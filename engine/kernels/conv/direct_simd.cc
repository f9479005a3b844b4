// Vector loops of direct convolution over pixels of rows.

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/conv/direct_simd.cc"
#include "hwy/foreach_target.h"

#include <algorithm>
#include <array>
#include <utility>

#include "hwy/highway.h"

#include "kernels/conv/direct_simd.h"

HWY_BEFORE_NAMESPACE();
namespace paddle::cpu::HWY_NAMESPACE {
namespace {
namespace hn = hwy::HWY_NAMESPACE;

using D = hn::ScalableTag<float>;
using V = hn::Vec<D>;

// Channels whose sums (two vectors each) stay in registers.
#if HWY_TARGET == HWY_SCALAR || HWY_TARGET == HWY_AVX2
constexpr int kOutputs = 6;
#else
constexpr int kOutputs = 8;
#endif

int64_t lanes() { return static_cast<int64_t>(hn::Lanes(D())); }

/// Offsets of a vector of pixels in x and in y.
struct PixelOffsets {
  int64_t x, y;
};

/// Vectors of pixels of one block of output channels.
template <int kVectors, int kOutputBlock>
HWY_INLINE void pixels(const DirectRows& s, const PixelOffsets* at, const float* bias,
                       float clamp_min, float* y, int64_t pitch) {
  const D d;
  V sum[kOutputBlock][kVectors];
#pragma GCC unroll 8
  for (int o = 0; o < kOutputBlock; ++o)
#pragma GCC unroll 2
    for (int v = 0; v < kVectors; ++v) sum[o][v] = bias ? hn::Set(d, bias[o]) : hn::Zero(d);
  const float* w = s.weight;
  for (int64_t c = 0; c < s.channels; ++c)
    for (int64_t r = 0; r < s.kernel_height; ++r) {
      const float* const row = s.x + c * s.channel_stride + r * s.row_stride;
      for (int64_t k = 0; k < s.kernel_width; ++k, w += kOutputBlock) {
        V value[kVectors];
#pragma GCC unroll 2
        for (int v = 0; v < kVectors; ++v) value[v] = hn::LoadU(d, row + at[v].x + k);
#pragma GCC unroll 8
        for (int o = 0; o < kOutputBlock; ++o) {
          const V factor = hn::Set(d, w[o]);
#pragma GCC unroll 2
          for (int v = 0; v < kVectors; ++v) sum[o][v] = hn::MulAdd(factor, value[v], sum[o][v]);
        }
      }
    }
  const V low = hn::Set(d, clamp_min);
  const auto some = hn::FirstN(d, static_cast<size_t>(s.out_width));
#pragma GCC unroll 8
  for (int o = 0; o < kOutputBlock; ++o)
#pragma GCC unroll 2
    for (int v = 0; v < kVectors; ++v) {
      const V result = hn::IfThenElse(hn::Lt(sum[o][v], low), low, sum[o][v]);  // propagates NaN
      float* const to = y + o * pitch + at[v].y;
      if (s.out_width >= lanes())
        hn::StoreU(result, d, to);
      else
        hn::BlendedStore(result, some, d, to);
    }
}

template <int kOutputBlock>
void rows_of(const DirectRows& s, const float* bias, float clamp_min, float* y, int64_t pitch) {
  // The last vector of a row overlaps the one before it.
  const int64_t vectors = (s.out_width + lanes() - 1) / lanes();
  const int64_t last = std::max<int64_t>(0, s.out_width - lanes());
  const auto pixel_offsets = [&](int64_t i) {
    const int64_t row = i / vectors, column = std::min(i % vectors * lanes(), last);
    return PixelOffsets{row * s.stride * s.row_stride + column, row * s.out_width + column};
  };
  int64_t i = 0;
  for (; i + 2 <= s.rows * vectors; i += 2) {
    const PixelOffsets at[] = {pixel_offsets(i), pixel_offsets(i + 1)};
    pixels<2, kOutputBlock>(s, at, bias, clamp_min, y, pitch);
  }
  if (i == s.rows * vectors) return;
  const PixelOffsets at[] = {pixel_offsets(i)};
  pixels<1, kOutputBlock>(s, at, bias, clamp_min, y, pitch);
}

/// functions[i] is for i + 1 outputs.
template <size_t... kIndex>
constexpr auto row_functions(std::index_sequence<kIndex...>) {
  return std::array{&rows_of<static_cast<int>(kIndex) + 1>...};
}

void rows(const DirectRows& s, const float* bias, float clamp_min, float* y, int64_t pitch) {
  static constexpr auto functions =
      row_functions(std::make_index_sequence<static_cast<size_t>(kOutputs)>());
  functions[static_cast<size_t>(s.outputs - 1)](s, bias, clamp_min, y, pitch);
}

}  // namespace

const DirectLoops* direct_loops_of_target() {
  static const DirectLoops loops = {lanes(), kOutputs, rows};
  return &loops;
}

}  // namespace paddle::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace paddle::cpu {

HWY_EXPORT(direct_loops_of_target);

const DirectLoops& direct_loops() { return *HWY_DYNAMIC_DISPATCH(direct_loops_of_target)(); }

}  // namespace paddle::cpu
#endif
