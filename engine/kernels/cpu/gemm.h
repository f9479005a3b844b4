#pragma once
// A blocked matrix product for f32 and f64 in the best instruction set of the machine. It serves
// where oneDNN does not: f64, 16-bit floats through f32, and convolutions in those types.

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

}  // namespace paddle::cpu
