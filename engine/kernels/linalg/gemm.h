#pragma once
// Matrix products for f32 and f64 in the best instruction set of the machine: of blocks of any two
// matrices, and of several with one that is packed once. They serve where oneDNN does not: f64,
// 16-bit floats through f32, convolutions in those types, and the small products of attention.

#include <cstdint>

namespace paddle::cpu {

/// A matrix with any strides, of which the product reads `rows` × `columns`.
template <class T>
struct MatrixView {
  const T* data;
  int64_t row_stride, column_stride;
};

constexpr int64_t kGemmRows = 192, kGemmColumns = 384, kGemmDepth = 192;  // one block

/// Bytes of workspace for one call of gemm_block.
size_t gemm_workspace_bytes(int64_t item);

/// c[m, n] += Σ_k a[m, k] b[k, n] for a block of at most kGemmRows × kGemmColumns results; k is any
/// number. `c` has unit column stride.
void gemm_block(int64_t m, int64_t n, int64_t k, MatrixView<float> a, MatrixView<float> b, float* c,
                int64_t c_row_stride, void* workspace);
void gemm_block(int64_t m, int64_t n, int64_t k, MatrixView<double> a, MatrixView<double> b,
                double* c, int64_t c_row_stride, void* workspace);

/// Bytes of a matrix [depth, columns] that pack() has written.
size_t packed_bytes(int64_t depth, int64_t columns, int64_t item);
void pack(int64_t depth, int64_t columns, MatrixView<float> b, float* packed);
void pack(int64_t depth, int64_t columns, MatrixView<double> b, double* packed);

/// c[m, n] = factor Σ_k a[m, k] b[k, n], or that added to what `c` holds.
template <class T>
struct PackedProduct {
  int64_t m, n, k;
  MatrixView<T> a;  ///< fast if one of its strides is 1
  const T* packed;  ///< its first k rows and n columns are taken
  int64_t depth;    ///< rows that were packed
  T factor;
  bool add;
  T* c;
  int64_t c_stride;  ///< from row to row
};
/// Bytes of workspace for products of at most this k.
size_t packed_product_workspace_bytes(int64_t k, int64_t item);
void multiply(const PackedProduct<float>& product, void* workspace);
void multiply(const PackedProduct<double>& product, void* workspace);

}  // namespace paddle::cpu
