// GEMM with packed panels: panels are packed in the order in which the microkernel reads them, and
// the microkernel keeps a tile of results in registers.

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/linalg/gemm_simd.cc"
#include "hwy/foreach_target.h"

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <iterator>

#include "hwy/highway.h"

#include "kernels/linalg/gemm.h"

HWY_BEFORE_NAMESPACE();
namespace paddle::cpu::HWY_NAMESPACE {
namespace {
namespace hn = hwy::HWY_NAMESPACE;

// Products with a packed right side also have smaller tiles, for numbers of rows that are no
// multiple of kTileRows.
#if HWY_TARGET == HWY_SCALAR
constexpr int64_t kTileRows = 4, kSmallerTiles[] = {2, 3};
#elif HWY_TARGET == HWY_AVX2
constexpr int64_t kTileRows = 6, kSmallerTiles[] = {4, 5};
#else
constexpr int64_t kTileRows = 12, kSmallerTiles[] = {4, 8, 10};
#endif
constexpr int64_t kTileVectors = 2;

/// How the microkernel reads the rows of its tile of the left operand.
enum class Left { kRows, kColumns };  // a[r * stride + k], a[k * stride + r]

/// Memory that is read soon: the microkernel prefetches `step` bytes further with each k.
struct Ahead {
  const char* at = nullptr;
  size_t step = 0;
};

/// A tile of `rows` × `columns` results, which are multiplied by `factor` and stored in or added to
/// `out`.
template <class T>
struct Tile {
  T* out;
  int64_t stride, rows, columns;
  T factor;
  bool add;
};

template <class T, int kVectors, int64_t kRows>
HWY_INLINE void store(const Tile<T>& tile,
                      const hn::Vec<hn::ScalableTag<T>> (&sum)[kRows][kVectors]) {
  const hn::ScalableTag<T> d;
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
  const auto factor = hn::Set(d, tile.factor);
  if (tile.rows == kRows && tile.columns == kVectors * lanes) {
#pragma GCC unroll 16
    for (int64_t r = 0; r < kRows; ++r)
      for (int v = 0; v < kVectors; ++v) {
        T* const at = tile.out + r * tile.stride + v * lanes;
        hn::StoreU(
            tile.add ? hn::MulAdd(sum[r][v], factor, hn::LoadU(d, at)) : hn::Mul(sum[r][v], factor),
            d, at);
      }
    return;
  }
  HWY_ALIGN T values[kRows][kVectors * hn::MaxLanes(hn::ScalableTag<T>())];
#pragma GCC unroll 16
  for (int64_t r = 0; r < kRows; ++r)
    for (int v = 0; v < kVectors; ++v)
      hn::StoreU(hn::Mul(sum[r][v], factor), d, values[r] + v * lanes);
  for (int64_t r = 0; r < tile.rows; ++r) {
    T* const row = tile.out + r * tile.stride;
    for (int64_t j = 0; j < tile.columns; ++j) row[j] = values[r][j] + (tile.add ? row[j] : T(0));
  }
}

/// Microkernel: sums a[:, r] b[k, :] over k for kRows rows; b is a panel of kTileVectors vectors,
/// of which kVectors are used.
template <Left kLeft, int kVectors, int64_t kRows = kTileRows, bool kPrefetch = true, class T>
void compute(int64_t k, const T* a, int64_t a_stride, const T* b, const Tile<T>& tile,
             Ahead ahead) {
  const hn::ScalableTag<T> d;
  using V = hn::Vec<decltype(d)>;
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
  // Rows that share a pointer, because there are few registers for pointers.
  constexpr int64_t kGroup = 3;
  const T* group[(kRows + kGroup - 1) / kGroup];
  for (int64_t g = 0; g * kGroup < kRows; ++g)
    group[g] = a + g * kGroup * (kLeft == Left::kRows ? a_stride : 1);
  V sum[kRows][kVectors];
#pragma GCC unroll 16
  for (int64_t r = 0; r < kRows; ++r)
    for (int v = 0; v < kVectors; ++v) sum[r][v] = hn::Zero(d);
  for (int64_t i = 0; i < k; ++i) {
    V right[kVectors];
    for (int v = 0; v < kVectors; ++v) right[v] = hn::LoadU(d, b + v * lanes);
    if constexpr (kPrefetch) {
      __builtin_prefetch(ahead.at, 0, 2);
      ahead.at += ahead.step;
    }
#pragma GCC unroll 16
    for (int64_t r = 0; r < kRows; ++r) {
      const T* const at = group[r / kGroup];
      const V left = hn::Set(d, at[r % kGroup * (kLeft == Left::kRows ? a_stride : 1)]);
      for (int v = 0; v < kVectors; ++v) sum[r][v] = hn::MulAdd(left, right[v], sum[r][v]);
    }
    for (auto& at : group) at += kLeft == Left::kRows ? 1 : a_stride;
    b += kTileVectors * lanes;
  }
  store<T, kVectors, kRows>(tile, sum);
}

/// Copies lines of a width that is known at compile time.
template <size_t kWidth, class T>
void copy_lines(const T* from, int64_t count, int64_t stride, T* to) {
  for (int64_t k = 0; k < count; ++k, from += stride, to += kWidth)
    std::memcpy(to, from, kWidth * sizeof(T));
}

/// Packs panels of `width` lines (rows of a tile, or kTileVectors vectors), each [depth][width];
/// lines past the end are zero.
template <class T>
void pack_panels(const T* source, int64_t lines, int64_t line_stride, int64_t depth,
                 int64_t depth_stride, int64_t width, T* out) {
  for (int64_t first = 0; first < lines; first += width) {
    const int64_t count = std::min(width, lines - first);
    const T* const base = source + first * line_stride;
    if (line_stride == 1 && count == width) {
      constexpr int64_t kPanel = kTileVectors * hn::MaxLanes(hn::ScalableTag<T>());
      if (width == kTileRows || width == kPanel) {
        if (width == kTileRows)
          copy_lines<kTileRows>(base, depth, depth_stride, out);
        else
          copy_lines<kPanel>(base, depth, depth_stride, out);
        out += depth * width;
        continue;
      }
    }
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
int64_t tile_columns() {
  return kTileVectors * static_cast<int64_t>(hn::Lanes(hn::ScalableTag<T>()));
}

template <class T>
void block(int64_t m, int64_t n, int64_t k, MatrixView<T> a, MatrixView<T> b, T* c, int64_t stride,
           void* workspace) {
  T* const packed_a = static_cast<T*>(workspace);
  T* const packed_b = packed_a + (kGemmRows + kTileRows) * kGemmDepth;
  for (int64_t k0 = 0; k0 < k; k0 += kGemmDepth) {
    const int64_t depth = std::min(kGemmDepth, k - k0);
    pack_panels(a.data + k0 * a.column_stride, m, a.row_stride, depth, a.column_stride, kTileRows,
                packed_a);
    pack_panels(b.data + k0 * b.row_stride, n, b.column_stride, depth, b.row_stride,
                tile_columns<T>(), packed_b);
    for (int64_t j = 0; j < n; j += tile_columns<T>())
      for (int64_t i = 0; i < m; i += kTileRows)
        compute<Left::kColumns, kTileVectors, kTileRows, false>(
            depth, packed_a + i * depth, kTileRows, packed_b + j * depth,
            Tile<T>{c + i * stride + j, stride, std::min(kTileRows, m - i),
                    std::min(tile_columns<T>(), n - j), T(1), true},
            Ahead{});
  }
}

/// One panel of columns in tiles of kRows rows. Rows that fill a tile are read in place.
template <int kVectors, int64_t kRows, class T>
void multiply_panel(const PackedProduct<T>& p, int64_t j, T* workspace) {
  const T* const panel = p.packed + j * p.depth;
  // The tiles share the next panel.
  const size_t tiles = static_cast<size_t>((p.m + kRows - 1) / kRows);
  Ahead ahead{reinterpret_cast<const char*>(panel + p.depth * tile_columns<T>()),
              static_cast<size_t>(tile_columns<T>()) * sizeof(T) / tiles};
  for (int64_t i = 0; i < p.m; i += kRows) {
    const T* const rows = p.a.data + i * p.a.row_stride;
    const Tile<T> tile{p.c + i * p.c_stride + j,
                       p.c_stride,
                       std::min(kRows, p.m - i),
                       std::min(tile_columns<T>(), p.n - j),
                       p.factor,
                       p.add};
    if (tile.rows == kRows && p.a.column_stride == 1) {
      compute<Left::kRows, kVectors, kRows>(p.k, rows, p.a.row_stride, panel, tile, ahead);
    } else if (tile.rows == kRows && p.a.row_stride == 1) {
      compute<Left::kColumns, kVectors, kRows>(p.k, rows, p.a.column_stride, panel, tile, ahead);
    } else {
      pack_panels(rows, tile.rows, p.a.row_stride, p.k, p.a.column_stride, kRows, workspace);
      compute<Left::kColumns, kVectors, kRows>(p.k, workspace, kRows, panel, tile, ahead);
    }
    ahead.at += ahead.step * static_cast<size_t>(p.k);
  }
}

template <int64_t kRows, class T>
void multiply_tiles(const PackedProduct<T>& p, T* workspace) {
  for (int64_t j = 0; j < p.n; j += tile_columns<T>()) {
    if (2 * (p.n - j) <= tile_columns<T>())
      multiply_panel<kTileVectors / 2, kRows>(p, j, workspace);
    else
      multiply_panel<kTileVectors, kRows>(p, j, workspace);
  }
}

/// In the smallest tiles, from kSmallerTiles[kIndex] on, that hold `rows` rows.
template <size_t kIndex, class T>
void multiply_smallest(int64_t rows, const PackedProduct<T>& p, T* workspace) {
  if constexpr (kIndex == std::size(kSmallerTiles)) {
    multiply_tiles<kTileRows>(p, workspace);
  } else {
    if (rows <= kSmallerTiles[kIndex]) return multiply_tiles<kSmallerTiles[kIndex]>(p, workspace);
    multiply_smallest<kIndex + 1>(rows, p, workspace);
  }
}

/// The fewest tiles that hold the rows, and of these the smallest: 20 rows are 4 tiles of 5.
template <class T>
void multiply_packed(const PackedProduct<T>& p, T* workspace) {
  const int64_t tiles = std::max<int64_t>(1, (p.m + kTileRows - 1) / kTileRows);
  const int64_t rows = (p.m + tiles - 1) / tiles;
  multiply_smallest<0>(rows, p, workspace);
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

void pack_f32(int64_t depth, int64_t columns, MatrixView<float> b, float* packed) {
  pack_panels(b.data, columns, b.column_stride, depth, b.row_stride, tile_columns<float>(), packed);
}
void pack_f64(int64_t depth, int64_t columns, MatrixView<double> b, double* packed) {
  pack_panels(b.data, columns, b.column_stride, depth, b.row_stride, tile_columns<double>(),
              packed);
}
void multiply_f32(const PackedProduct<float>& p, void* workspace) {
  multiply_packed(p, static_cast<float*>(workspace));
}
void multiply_f64(const PackedProduct<double>& p, void* workspace) {
  multiply_packed(p, static_cast<double*>(workspace));
}

}  // namespace paddle::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace paddle::cpu {

HWY_EXPORT(block_f32);
HWY_EXPORT(block_f64);
HWY_EXPORT(pack_f32);
HWY_EXPORT(pack_f64);
HWY_EXPORT(multiply_f32);
HWY_EXPORT(multiply_f64);

// Space for the last, padded panels.
constexpr int64_t kMaxTileRows = 16, kMaxTileColumns = 64;

size_t gemm_workspace_bytes(int64_t item) {
  return static_cast<size_t>((kGemmRows + kMaxTileRows + kGemmColumns + kMaxTileColumns) *
                             kGemmDepth * item);
}
size_t packed_bytes(int64_t depth, int64_t columns, int64_t item) {
  return static_cast<size_t>(depth * (columns + kMaxTileColumns) * item);
}
size_t packed_product_workspace_bytes(int64_t k, int64_t item) {
  return static_cast<size_t>(kMaxTileRows * k * item);
}

void gemm_block(int64_t m, int64_t n, int64_t k, MatrixView<float> a, MatrixView<float> b, float* c,
                int64_t c_row_stride, void* workspace) {
  HWY_DYNAMIC_DISPATCH(block_f32)(m, n, k, a, b, c, c_row_stride, workspace);
}
void gemm_block(int64_t m, int64_t n, int64_t k, MatrixView<double> a, MatrixView<double> b,
                double* c, int64_t c_row_stride, void* workspace) {
  HWY_DYNAMIC_DISPATCH(block_f64)(m, n, k, a, b, c, c_row_stride, workspace);
}

void pack(int64_t depth, int64_t columns, MatrixView<float> b, float* packed) {
  HWY_DYNAMIC_DISPATCH(pack_f32)(depth, columns, b, packed);
}
void pack(int64_t depth, int64_t columns, MatrixView<double> b, double* packed) {
  HWY_DYNAMIC_DISPATCH(pack_f64)(depth, columns, b, packed);
}

void multiply(const PackedProduct<float>& product, void* workspace) {
  HWY_DYNAMIC_DISPATCH(multiply_f32)(product, workspace);
}
void multiply(const PackedProduct<double>& product, void* workspace) {
  HWY_DYNAMIC_DISPATCH(multiply_f64)(product, workspace);
}

}  // namespace paddle::cpu
#endif
