#pragma once
// The part of cuBLASLt's interface that we call, declared here so that building needs no CUDA.
// Names, values and signatures are those of `cublasLt.h`.

#include <cstddef>
#include <cstdint>

#include "kernels/cuda/abi/driver.h"

namespace paddle::cuda {

using cublasStatus_t = int;
using cublasLtHandle_t = struct cublasLtContext*;
using cublasLtMatmulDesc_t = struct cublasLtMatmulDescOpaque*;
using cublasLtMatrixLayout_t = struct cublasLtMatrixLayoutOpaque*;
using cublasLtMatmulPreference_t = struct cublasLtMatmulPreferenceOpaque*;

inline constexpr cublasStatus_t CUBLAS_STATUS_SUCCESS = 0;

inline constexpr int CUDA_R_32F = 0;
inline constexpr int CUDA_R_16F = 2;
inline constexpr int CUDA_R_16BF = 14;
inline constexpr int CUBLAS_COMPUTE_32F = 68;
inline constexpr int CUBLAS_OP_N = 0;
inline constexpr int CUBLAS_OP_T = 1;

inline constexpr int CUBLASLT_MATMUL_DESC_TRANSA = 3;
inline constexpr int CUBLASLT_MATMUL_DESC_TRANSB = 4;
inline constexpr int CUBLASLT_MATMUL_DESC_EPILOGUE = 7;
inline constexpr int CUBLASLT_MATMUL_DESC_BIAS_POINTER = 8;
inline constexpr int CUBLASLT_EPILOGUE_DEFAULT = 1;
inline constexpr int CUBLASLT_EPILOGUE_RELU = 2;
inline constexpr int CUBLASLT_EPILOGUE_BIAS = 4;
inline constexpr int CUBLASLT_EPILOGUE_GELU = 32;
inline constexpr int CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT = 5;
inline constexpr int CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET = 6;
inline constexpr int CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES = 1;
inline constexpr int CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK = 3;
inline constexpr int CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES = 5;
inline constexpr int CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES = 6;
inline constexpr int CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES = 7;
inline constexpr int CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES = 8;
inline constexpr uint32_t CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE = 2;

struct cublasLtMatmulAlgo_t {
  uint64_t data[8];
};
struct cublasLtMatmulHeuristicResult_t {
  cublasLtMatmulAlgo_t algo;
  size_t workspaceSize;
  cublasStatus_t state;
  float wavesCount;
  int reserved[4];
};

struct CublasLt {
  size_t (*cublasLtGetVersion)();
  const char* (*cublasLtGetStatusName)(cublasStatus_t status);
  cublasStatus_t (*cublasLtCreate)(cublasLtHandle_t* handle);
  cublasStatus_t (*cublasLtDestroy)(cublasLtHandle_t handle);
  cublasStatus_t (*cublasLtMatmulDescCreate)(cublasLtMatmulDesc_t* product, int compute, int scale);
  cublasStatus_t (*cublasLtMatmulDescDestroy)(cublasLtMatmulDesc_t product);
  cublasStatus_t (*cublasLtMatmulDescSetAttribute)(cublasLtMatmulDesc_t product, int attribute,
                                                   const void* value, size_t bytes);
  cublasStatus_t (*cublasLtMatrixLayoutCreate)(cublasLtMatrixLayout_t* layout, int type,
                                               uint64_t rows, uint64_t columns, int64_t stride);
  cublasStatus_t (*cublasLtMatrixLayoutDestroy)(cublasLtMatrixLayout_t layout);
  cublasStatus_t (*cublasLtMatrixLayoutSetAttribute)(cublasLtMatrixLayout_t layout, int attribute,
                                                     const void* value, size_t bytes);
  cublasStatus_t (*cublasLtMatmulPreferenceCreate)(cublasLtMatmulPreference_t* preference);
  cublasStatus_t (*cublasLtMatmulPreferenceDestroy)(cublasLtMatmulPreference_t preference);
  cublasStatus_t (*cublasLtMatmulPreferenceSetAttribute)(cublasLtMatmulPreference_t preference,
                                                         int attribute, const void* value,
                                                         size_t bytes);
  cublasStatus_t (*cublasLtMatmulAlgoGetHeuristic)(
      cublasLtHandle_t handle, cublasLtMatmulDesc_t product, cublasLtMatrixLayout_t a,
      cublasLtMatrixLayout_t b, cublasLtMatrixLayout_t c, cublasLtMatrixLayout_t d,
      cublasLtMatmulPreference_t preference, int most, cublasLtMatmulHeuristicResult_t* found,
      int* count);
  cublasStatus_t (*cublasLtMatmul)(cublasLtHandle_t handle, cublasLtMatmulDesc_t product,
                                   const void* alpha, const void* a,
                                   cublasLtMatrixLayout_t a_layout, const void* b,
                                   cublasLtMatrixLayout_t b_layout, const void* beta, const void* c,
                                   cublasLtMatrixLayout_t c_layout, void* d,
                                   cublasLtMatrixLayout_t d_layout,
                                   const cublasLtMatmulAlgo_t* algorithm, void* workspace,
                                   size_t workspace_bytes, CUstream stream);
};

/// Calls visit(name, member) for each function.
template <class Visit>
void visit_functions(CublasLt& api, Visit&& visit) {
  visit("cublasLtGetVersion", api.cublasLtGetVersion);
  visit("cublasLtGetStatusName", api.cublasLtGetStatusName);
  visit("cublasLtCreate", api.cublasLtCreate);
  visit("cublasLtDestroy", api.cublasLtDestroy);
  visit("cublasLtMatmulDescCreate", api.cublasLtMatmulDescCreate);
  visit("cublasLtMatmulDescDestroy", api.cublasLtMatmulDescDestroy);
  visit("cublasLtMatmulDescSetAttribute", api.cublasLtMatmulDescSetAttribute);
  visit("cublasLtMatrixLayoutCreate", api.cublasLtMatrixLayoutCreate);
  visit("cublasLtMatrixLayoutDestroy", api.cublasLtMatrixLayoutDestroy);
  visit("cublasLtMatrixLayoutSetAttribute", api.cublasLtMatrixLayoutSetAttribute);
  visit("cublasLtMatmulPreferenceCreate", api.cublasLtMatmulPreferenceCreate);
  visit("cublasLtMatmulPreferenceDestroy", api.cublasLtMatmulPreferenceDestroy);
  visit("cublasLtMatmulPreferenceSetAttribute", api.cublasLtMatmulPreferenceSetAttribute);
  visit("cublasLtMatmulAlgoGetHeuristic", api.cublasLtMatmulAlgoGetHeuristic);
  visit("cublasLtMatmul", api.cublasLtMatmul);
}

}  // namespace paddle::cuda
