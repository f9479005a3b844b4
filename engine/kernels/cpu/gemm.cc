// The blocked matrix product: panels of both operands are packed so that the inner kernel reads
// them in order, and keeps a small tile of results in registers.

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/gemm.cc"
#include "hwy/foreach_target.h"

#include <algorithm>
#include <cstddef>

#include "hwy/highway.h"

#include "kernels/cpu/gemm.h"

HWY_BEFORE_NAMESPACE();
namespace paddle::cpu::HWY_NAMESPACE {
namespace {
namespace hn = hwy::HWY_NAMESPACE;

#if HWY_TARGET == HWY_SCALAR
constexpr int64_t kTileRows = 4;
#elif HWY_TARGET == HWY_AVX2
constexpr int64_t kTileRows = 6;
#else
constexpr int64_t kTileRows = 12;
#endif
constexpr int64_t kTileVectors = 2;

/// tile[r, :] = Σ_k a[k, r] b[k, :] over packed panels.
template <class T>
void tile(int64_t k, const T* a, const T* b, T* out, int64_t stride, bool whole, int64_t rows,
          int64_t columns) {
  const hn::ScalableTag<T> d;
  using V = hn::Vec<decltype(d)>;
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
  V sum[kTileRows][kTileVectors];
  for (int64_t r = 0; r < kTileRows; ++r)
    for (int64_t v = 0; v < kTileVectors; ++v) sum[r][v] = hn::Zero(d);
  for (int64_t i = 0; i < k; ++i) {
    const V b0 = hn::LoadU(d, b), b1 = hn::LoadU(d, b + lanes);
#pragma GCC unroll 16
    for (int64_t r = 0; r < kTileRows; ++r) {
      const V ar = hn::Set(d, a[r]);
      sum[r][0] = hn::MulAdd(ar, b0, sum[r][0]);
      sum[r][1] = hn::MulAdd(ar, b1, sum[r][1]);
    }
    a += kTileRows;
    b += kTileVectors * lanes;
  }
  if (whole) {
    for (int64_t r = 0; r < kTileRows; ++r) {
      T* const row = out + r * stride;
      hn::StoreU(hn::Add(hn::LoadU(d, row), sum[r][0]), d, row);
      hn::StoreU(hn::Add(hn::LoadU(d, row + lanes), sum[r][1]), d, row + lanes);
    }
    return;
  }
  HWY_ALIGN T values[kTileVectors * hn::MaxLanes(hn::ScalableTag<T>())];
  for (int64_t r = 0; r < rows; ++r) {
    hn::Store(sum[r][0], d, values);
    hn::StoreU(sum[r][1], d, values + lanes);
    for (int64_t j = 0; j < columns; ++j) out[r * stride + j] += values[j];
  }
}

/// Panels of `width` lines, each panel [depth][width], lines past the end zero.
template <class T>
void pack(const T* source, int64_t lines, int64_t line_stride, int64_t depth, int64_t depth_stride,
          int64_t width, T* out) {
  for (int64_t first = 0; first < lines; first += width) {
    const int64_t count = std::min(width, lines - first);
    const T* const base = source + first * line_stride;
    for (int64_t k = 0; k < depth; ++k, out += width) {
      const T* const at = base + k * depth_stride;
      if (line_stride == 1) {
        for (int64_t i = 0; i < count; ++i) out[i] = at[i];
      } else {
        for (int64_t i = 0; i < count; ++i) out[i] = at[i * line_stride];
      }
      for (int64_t i = count; i < width; ++i) out[i] = T(0);
    }
  }
}

template <class T>
void block(int64_t m, int64_t n, int64_t k, MatrixView<T> a, MatrixView<T> b, T* c, int64_t stride,
           void* workspace) {
  const int64_t tile_columns = kTileVectors * static_cast<int64_t>(hn::Lanes(hn::ScalableTag<T>()));
  T* const packed_a = static_cast<T*>(workspace);
  T* const packed_b = packed_a + (kGemmRows + kTileRows) * kGemmDepth;
  for (int64_t k0 = 0; k0 < k; k0 += kGemmDepth) {
    const int64_t depth = std::min(kGemmDepth, k - k0);
    pack(a.data + k0 * a.column_stride, m, a.row_stride, depth, a.column_stride, kTileRows,
         packed_a);
    pack(b.data + k0 * b.row_stride, n, b.column_stride, depth, b.row_stride, tile_columns,
         packed_b);
    for (int64_t j = 0; j < n; j += tile_columns)
      for (int64_t i = 0; i < m; i += kTileRows) {
        const int64_t rows = std::min(kTileRows, m - i), columns = std::min(tile_columns, n - j);
        tile(depth, packed_a + i * depth, packed_b + j * depth, c + i * stride + j, stride,
             rows == kTileRows && columns == tile_columns, rows, columns);
      }
  }
}

}  // namespace

void block_f32(int64_t m, int64_t n, int64_t k, MatrixView<float> a, MatrixView<float> b, float* c,
               int64_t stride, void* workspace) {
  block(m, n, k, a, b, c, stride, workspace);
}
void block_f64(int64_t m, int64_t n, int64_t k, MatrixView<double> a, MatrixView<double> b,
               double* c, int64_t stride, void* workspace) {
  block(m, n, k, a, b, c, stride, workspace);
}

}  // namespace paddle::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace paddle::cpu {

HWY_EXPORT(block_f32);
HWY_EXPORT(block_f64);

size_t gemm_workspace_bytes(int64_t item) {
  // Room for the last, padded panels: at most 16 rows and 64 columns.
  return static_cast<size_t>((kGemmRows + 16 + kGemmColumns + 64) * kGemmDepth * item);
}

void gemm_block(int64_t m, int64_t n, int64_t k, MatrixView<float> a, MatrixView<float> b, float* c,
                int64_t c_row_stride, void* workspace) {
  HWY_DYNAMIC_DISPATCH(block_f32)(m, n, k, a, b, c, c_row_stride, workspace);
}
void gemm_block(int64_t m, int64_t n, int64_t k, MatrixView<double> a, MatrixView<double> b,
                double* c, int64_t c_row_stride, void* workspace) {
  HWY_DYNAMIC_DISPATCH(block_f64)(m, n, k, a, b, c, c_row_stride, workspace);
}

}  // namespace paddle::cpu
#endif
