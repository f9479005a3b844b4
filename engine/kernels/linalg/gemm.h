#pragma once
// GEMM in f32 and f64 for the best instruction set of the machine: blocks of two arbitrary
// matrices, and products with a prepacked right side. Used where oneDNN is not: f64, 16-bit floats
// through f32, convolutions in those types, and the small products of attention.

#include <cstdint>

namespace paddle::cpu {

/// A matrix with any strides, of which a product reads `rows` × `columns`.
template <class T>
struct MatrixView {
  const T* data;
  int64_t row_stride, column_stride;
};

constexpr int64_t kGemmRows = 192, kGemmColumns = 384, kGemmDepth = 192;  // one block

/// Bytes of workspace for one call of gemm_block.
size_t gemm_workspace_bytes(int64_t item);

/// c[m, n] += Σ_k a[m, k] b[k, n] for a block of at most kGemmRows × kGemmColumns results and any
/// k. `c` has a column stride of 1.
void gemm_block(int64_t m, int64_t n, int64_t k, MatrixView<float> a, MatrixView<float> b, float* c,
                int64_t c_row_stride, void* workspace);
void gemm_block(int64_t m, int64_t n, int64_t k, MatrixView<double> a, MatrixView<double> b,
                double* c, int64_t c_row_stride, void* workspace);

/// Bytes that pack() writes for a matrix [depth, columns].
size_t packed_bytes(int64_t depth, int64_t columns, int64_t item);
void pack(int64_t depth, int64_t columns, MatrixView<float> b, float* packed);
void pack(int64_t depth, int64_t columns, MatrixView<double> b, double* packed);

/// c[m, n] = factor Σ_k a[m, k] b[k, n], or added to `c` if `add`.
template <class T>
struct PackedProduct {
  int64_t m, n, k;
  MatrixView<T> a;  ///< fast if one of its strides is 1
  const T* packed;  ///< of which the first k rows and n columns are used
  int64_t depth;    ///< rows that were packed
  T factor;
  bool add;
  T* c;
  int64_t c_stride;  ///< row stride
};
/// Bytes of workspace for products of up to this k.
size_t packed_product_workspace_bytes(int64_t k, int64_t item);
void multiply(const PackedProduct<float>& product, void* workspace);
void multiply(const PackedProduct<double>& product, void* workspace);

}  // namespace paddle::cpu
