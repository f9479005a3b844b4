// Compiled, not run: our declarations of cuBLASLt (PADDLE_CHECK_CUBLASLT) and of cuDNN
// (PADDLE_CHECK_CUDNN) against the real headers, which come after ours.

#include "alike.h"
#include "kernels/cuda/abi/cublaslt.h"
#include "kernels/cuda/abi/cudnn.h"

// clang-format off
#define CUBLASLT_FUNCTIONS(visit) \
  visit(cublasLtGetVersion) \
  visit(cublasLtGetStatusName) \
  visit(cublasLtCreate) \
  visit(cublasLtDestroy) \
  visit(cublasLtMatmulDescCreate) \
  visit(cublasLtMatmulDescDestroy) \
  visit(cublasLtMatmulDescSetAttribute) \
  visit(cublasLtMatrixLayoutCreate) \
  visit(cublasLtMatrixLayoutDestroy) \
  visit(cublasLtMatrixLayoutSetAttribute) \
  visit(cublasLtMatmulPreferenceCreate) \
  visit(cublasLtMatmulPreferenceDestroy) \
  visit(cublasLtMatmulPreferenceSetAttribute) \
  visit(cublasLtMatmulAlgoGetHeuristic) \
  visit(cublasLtMatmul)
#define CUBLASLT_VALUES(visit) \
  visit(CUBLAS_STATUS_SUCCESS) \
  visit(CUDA_R_32F) \
  visit(CUDA_R_16F) \
  visit(CUDA_R_16BF) \
  visit(CUBLAS_COMPUTE_32F) \
  visit(CUBLAS_OP_N) \
  visit(CUBLAS_OP_T) \
  visit(CUBLASLT_MATMUL_DESC_TRANSA) \
  visit(CUBLASLT_MATMUL_DESC_TRANSB) \
  visit(CUBLASLT_MATMUL_DESC_EPILOGUE) \
  visit(CUBLASLT_MATMUL_DESC_BIAS_POINTER) \
  visit(CUBLASLT_EPILOGUE_DEFAULT) \
  visit(CUBLASLT_EPILOGUE_RELU) \
  visit(CUBLASLT_EPILOGUE_BIAS) \
  visit(CUBLASLT_EPILOGUE_GELU) \
  visit(CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT) \
  visit(CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET) \
  visit(CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES) \
  visit(CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK) \
  visit(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES) \
  visit(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES) \
  visit(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES) \
  visit(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES) \
  visit(CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE)
#define CUDNN_FUNCTIONS(visit) \
  visit(cudnnGetVersion) \
  visit(cudnnGetErrorString) \
  visit(cudnnCreate) \
  visit(cudnnDestroy) \
  visit(cudnnSetStream) \
  visit(cudnnBackendCreateDescriptor) \
  visit(cudnnBackendDestroyDescriptor) \
  visit(cudnnBackendFinalize) \
  visit(cudnnBackendSetAttribute) \
  visit(cudnnBackendGetAttribute) \
  visit(cudnnBackendExecute)
#define CUDNN_VALUES(visit) \
  visit(CUDNN_STATUS_SUCCESS) \
  visit(CUDNN_DATA_FLOAT) \
  visit(CUDNN_DATA_HALF) \
  visit(CUDNN_DATA_INT32) \
  visit(CUDNN_DATA_BFLOAT16) \
  visit(CUDNN_DATA_BOOLEAN) \
  visit(CUDNN_TYPE_HANDLE) \
  visit(CUDNN_TYPE_DATA_TYPE) \
  visit(CUDNN_TYPE_BOOLEAN) \
  visit(CUDNN_TYPE_INT64) \
  visit(CUDNN_TYPE_FLOAT) \
  visit(CUDNN_TYPE_VOID_PTR) \
  visit(CUDNN_TYPE_CONVOLUTION_MODE) \
  visit(CUDNN_TYPE_HEUR_MODE) \
  visit(CUDNN_TYPE_NUMERICAL_NOTE) \
  visit(CUDNN_TYPE_POINTWISE_MODE) \
  visit(CUDNN_TYPE_BACKEND_DESCRIPTOR) \
  visit(CUDNN_TYPE_REDUCTION_OPERATOR_TYPE) \
  visit(CUDNN_BACKEND_POINTWISE_DESCRIPTOR) \
  visit(CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR) \
  visit(CUDNN_BACKEND_ENGINE_DESCRIPTOR) \
  visit(CUDNN_BACKEND_ENGINECFG_DESCRIPTOR) \
  visit(CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR) \
  visit(CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR) \
  visit(CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR) \
  visit(CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_FILTER_DESCRIPTOR) \
  visit(CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR) \
  visit(CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR) \
  visit(CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR) \
  visit(CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR) \
  visit(CUDNN_BACKEND_TENSOR_DESCRIPTOR) \
  visit(CUDNN_BACKEND_MATMUL_DESCRIPTOR) \
  visit(CUDNN_BACKEND_OPERATION_MATMUL_DESCRIPTOR) \
  visit(CUDNN_BACKEND_REDUCTION_DESCRIPTOR) \
  visit(CUDNN_BACKEND_OPERATION_REDUCTION_DESCRIPTOR) \
  visit(CUDNN_BACKEND_OPERATION_RESHAPE_DESCRIPTOR) \
  visit(CUDNN_ATTR_POINTWISE_MODE) \
  visit(CUDNN_ATTR_POINTWISE_MATH_PREC) \
  visit(CUDNN_ATTR_POINTWISE_AXIS) \
  visit(CUDNN_ATTR_CONVOLUTION_COMP_TYPE) \
  visit(CUDNN_ATTR_CONVOLUTION_CONV_MODE) \
  visit(CUDNN_ATTR_CONVOLUTION_DILATIONS) \
  visit(CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES) \
  visit(CUDNN_ATTR_CONVOLUTION_POST_PADDINGS) \
  visit(CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS) \
  visit(CUDNN_ATTR_CONVOLUTION_SPATIAL_DIMS) \
  visit(CUDNN_ATTR_ENGINEHEUR_MODE) \
  visit(CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH) \
  visit(CUDNN_ATTR_ENGINEHEUR_RESULTS) \
  visit(CUDNN_ATTR_ENGINECFG_ENGINE) \
  visit(CUDNN_ATTR_EXECUTION_PLAN_HANDLE) \
  visit(CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG) \
  visit(CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE) \
  visit(CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_ALPHA) \
  visit(CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_ALPHA) \
  visit(CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_ALPHA) \
  visit(CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR) \
  visit(CUDNN_ATTR_OPERATION_POINTWISE_XDESC) \
  visit(CUDNN_ATTR_OPERATION_POINTWISE_BDESC) \
  visit(CUDNN_ATTR_OPERATION_POINTWISE_YDESC) \
  visit(CUDNN_ATTR_OPERATION_POINTWISE_TDESC) \
  visit(CUDNN_ATTR_OPERATIONGRAPH_HANDLE) \
  visit(CUDNN_ATTR_OPERATIONGRAPH_OPS) \
  visit(CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT) \
  visit(CUDNN_ATTR_TENSOR_DATA_TYPE) \
  visit(CUDNN_ATTR_TENSOR_DIMENSIONS) \
  visit(CUDNN_ATTR_TENSOR_STRIDES) \
  visit(CUDNN_ATTR_TENSOR_UNIQUE_ID) \
  visit(CUDNN_ATTR_TENSOR_IS_VIRTUAL) \
  visit(CUDNN_ATTR_TENSOR_IS_BY_VALUE) \
  visit(CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS) \
  visit(CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS) \
  visit(CUDNN_ATTR_VARIANT_PACK_WORKSPACE) \
  visit(CUDNN_ATTR_ENGINE_GLOBAL_INDEX) \
  visit(CUDNN_ATTR_ENGINE_NUMERICAL_NOTE) \
  visit(CUDNN_ATTR_MATMUL_COMP_TYPE) \
  visit(CUDNN_ATTR_OPERATION_MATMUL_ADESC) \
  visit(CUDNN_ATTR_OPERATION_MATMUL_BDESC) \
  visit(CUDNN_ATTR_OPERATION_MATMUL_CDESC) \
  visit(CUDNN_ATTR_OPERATION_MATMUL_DESC) \
  visit(CUDNN_ATTR_REDUCTION_OPERATOR) \
  visit(CUDNN_ATTR_REDUCTION_COMP_TYPE) \
  visit(CUDNN_ATTR_OPERATION_REDUCTION_XDESC) \
  visit(CUDNN_ATTR_OPERATION_REDUCTION_YDESC) \
  visit(CUDNN_ATTR_OPERATION_REDUCTION_DESC) \
  visit(CUDNN_ATTR_OPERATION_RESHAPE_XDESC) \
  visit(CUDNN_ATTR_OPERATION_RESHAPE_YDESC) \
  visit(CUDNN_CROSS_CORRELATION) \
  visit(CUDNN_HEUR_MODE_FALLBACK) \
  visit(CUDNN_HEUR_MODE_A) \
  visit(CUDNN_NUMERICAL_NOTE_TENSOR_CORE) \
  visit(CUDNN_NUMERICAL_NOTE_DOWN_CONVERT_INPUTS) \
  visit(CUDNN_NUMERICAL_NOTE_REDUCED_PRECISION_REDUCTION) \
  visit(CUDNN_NUMERICAL_NOTE_FFT) \
  visit(CUDNN_NUMERICAL_NOTE_NONDETERMINISTIC) \
  visit(CUDNN_NUMERICAL_NOTE_WINOGRAD) \
  visit(CUDNN_POINTWISE_ADD) \
  visit(CUDNN_POINTWISE_MUL) \
  visit(CUDNN_POINTWISE_DIV) \
  visit(CUDNN_POINTWISE_SUB) \
  visit(CUDNN_POINTWISE_EXP) \
  visit(CUDNN_POINTWISE_LOG) \
  visit(CUDNN_POINTWISE_CMP_GE) \
  visit(CUDNN_POINTWISE_GEN_INDEX) \
  visit(CUDNN_POINTWISE_BINARY_SELECT) \
  visit(CUDNN_REDUCE_TENSOR_ADD) \
  visit(CUDNN_REDUCE_TENSOR_MAX)
// clang-format on

namespace {

#define OUR_PRODUCT_FUNCTION(name) using ours_##name = decltype(paddle::cuda::CublasLt::name);
CUBLASLT_FUNCTIONS(OUR_PRODUCT_FUNCTION)
#define OUR_DNN_FUNCTION(name) using ours_##name = decltype(paddle::cuda::Cudnn::name);
CUDNN_FUNCTIONS(OUR_DNN_FUNCTION)
#define OUR_VALUE(name) constexpr long long value_##name = paddle::cuda::name;
CUBLASLT_VALUES(OUR_VALUE)
CUDNN_VALUES(OUR_VALUE)

}  // namespace

#define SAME(name) \
  static_assert(Alike<ours_##name, decltype(&::name)>::value, "the signature of " #name);
#define SAME_VALUE(name) static_assert(value_##name == static_cast<long long>(::name), #name);

#ifdef PADDLE_CHECK_CUBLASLT
#include <cublasLt.h>
CUBLASLT_FUNCTIONS(SAME)
CUBLASLT_VALUES(SAME_VALUE)
static_assert(sizeof(paddle::cuda::cublasLtMatmulAlgo_t) == sizeof(::cublasLtMatmulAlgo_t));
static_assert(sizeof(paddle::cuda::cublasLtMatmulHeuristicResult_t) ==
              sizeof(::cublasLtMatmulHeuristicResult_t));
static_assert(offsetof(paddle::cuda::cublasLtMatmulHeuristicResult_t, workspaceSize) ==
              offsetof(::cublasLtMatmulHeuristicResult_t, workspaceSize));
static_assert(offsetof(paddle::cuda::cublasLtMatmulHeuristicResult_t, state) ==
              offsetof(::cublasLtMatmulHeuristicResult_t, state));
#endif

#ifdef PADDLE_CHECK_CUDNN
#include <cudnn_graph.h>
CUDNN_FUNCTIONS(SAME)
CUDNN_VALUES(SAME_VALUE)
#endif
