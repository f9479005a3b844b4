#pragma once
// The part of cuDNN's graph interface that we call, declared here so that building needs no CUDA.
// Names, values and signatures are those of `cudnn_graph.h`.

#include <cstddef>
#include <cstdint>

#include "kernels/cuda/abi/driver.h"

namespace paddle::cuda {

using cudnnStatus_t = int;
using cudnnHandle_t = struct cudnnContext*;
using cudnnBackendDescriptor_t = void*;

inline constexpr cudnnStatus_t CUDNN_STATUS_SUCCESS = 0;

// Types of elements.
inline constexpr int CUDNN_DATA_FLOAT = 0;
inline constexpr int CUDNN_DATA_HALF = 2;
inline constexpr int CUDNN_DATA_INT32 = 4;
inline constexpr int CUDNN_DATA_BFLOAT16 = 9;
inline constexpr int CUDNN_DATA_BOOLEAN = 11;

// Types of attributes.
inline constexpr int CUDNN_TYPE_HANDLE = 0;
inline constexpr int CUDNN_TYPE_DATA_TYPE = 1;
inline constexpr int CUDNN_TYPE_BOOLEAN = 2;
inline constexpr int CUDNN_TYPE_INT64 = 3;
inline constexpr int CUDNN_TYPE_FLOAT = 4;
inline constexpr int CUDNN_TYPE_VOID_PTR = 6;
inline constexpr int CUDNN_TYPE_CONVOLUTION_MODE = 7;
inline constexpr int CUDNN_TYPE_HEUR_MODE = 8;
inline constexpr int CUDNN_TYPE_NUMERICAL_NOTE = 11;
inline constexpr int CUDNN_TYPE_POINTWISE_MODE = 14;
inline constexpr int CUDNN_TYPE_BACKEND_DESCRIPTOR = 15;
inline constexpr int CUDNN_TYPE_REDUCTION_OPERATOR_TYPE = 18;

// Descriptors.
inline constexpr int CUDNN_BACKEND_POINTWISE_DESCRIPTOR = 0;
inline constexpr int CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR = 1;
inline constexpr int CUDNN_BACKEND_ENGINE_DESCRIPTOR = 2;
inline constexpr int CUDNN_BACKEND_ENGINECFG_DESCRIPTOR = 3;
inline constexpr int CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR = 4;
inline constexpr int CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR = 5;
inline constexpr int CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR = 10;
inline constexpr int CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_FILTER_DESCRIPTOR = 11;
inline constexpr int CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR = 12;
inline constexpr int CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR = 13;
inline constexpr int CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR = 15;
inline constexpr int CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR = 16;
inline constexpr int CUDNN_BACKEND_TENSOR_DESCRIPTOR = 17;
inline constexpr int CUDNN_BACKEND_MATMUL_DESCRIPTOR = 18;
inline constexpr int CUDNN_BACKEND_OPERATION_MATMUL_DESCRIPTOR = 19;
inline constexpr int CUDNN_BACKEND_REDUCTION_DESCRIPTOR = 21;
inline constexpr int CUDNN_BACKEND_OPERATION_REDUCTION_DESCRIPTOR = 22;
inline constexpr int CUDNN_BACKEND_OPERATION_RESHAPE_DESCRIPTOR = 31;

// Attributes.
inline constexpr int CUDNN_ATTR_POINTWISE_MODE = 0;
inline constexpr int CUDNN_ATTR_POINTWISE_MATH_PREC = 1;
inline constexpr int CUDNN_ATTR_POINTWISE_AXIS = 9;
inline constexpr int CUDNN_ATTR_CONVOLUTION_COMP_TYPE = 100;
inline constexpr int CUDNN_ATTR_CONVOLUTION_CONV_MODE = 101;
inline constexpr int CUDNN_ATTR_CONVOLUTION_DILATIONS = 102;
inline constexpr int CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES = 103;
inline constexpr int CUDNN_ATTR_CONVOLUTION_POST_PADDINGS = 104;
inline constexpr int CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS = 105;
inline constexpr int CUDNN_ATTR_CONVOLUTION_SPATIAL_DIMS = 106;
inline constexpr int CUDNN_ATTR_ENGINEHEUR_MODE = 200;
inline constexpr int CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH = 201;
inline constexpr int CUDNN_ATTR_ENGINEHEUR_RESULTS = 202;
inline constexpr int CUDNN_ATTR_ENGINECFG_ENGINE = 300;
inline constexpr int CUDNN_ATTR_EXECUTION_PLAN_HANDLE = 400;
inline constexpr int CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG = 401;
inline constexpr int CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE = 402;
// The others of a convolution follow: beta, the convolution, and three tensors.
inline constexpr int CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_ALPHA = 700;
inline constexpr int CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_ALPHA = 706;
inline constexpr int CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_ALPHA = 712;
inline constexpr int CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR = 750;
inline constexpr int CUDNN_ATTR_OPERATION_POINTWISE_XDESC = 751;
inline constexpr int CUDNN_ATTR_OPERATION_POINTWISE_BDESC = 752;
inline constexpr int CUDNN_ATTR_OPERATION_POINTWISE_YDESC = 753;
inline constexpr int CUDNN_ATTR_OPERATION_POINTWISE_TDESC = 758;
inline constexpr int CUDNN_ATTR_OPERATIONGRAPH_HANDLE = 800;
inline constexpr int CUDNN_ATTR_OPERATIONGRAPH_OPS = 801;
inline constexpr int CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT = 900;
inline constexpr int CUDNN_ATTR_TENSOR_DATA_TYPE = 901;
inline constexpr int CUDNN_ATTR_TENSOR_DIMENSIONS = 902;
inline constexpr int CUDNN_ATTR_TENSOR_STRIDES = 903;
inline constexpr int CUDNN_ATTR_TENSOR_UNIQUE_ID = 906;
inline constexpr int CUDNN_ATTR_TENSOR_IS_VIRTUAL = 907;
inline constexpr int CUDNN_ATTR_TENSOR_IS_BY_VALUE = 908;
inline constexpr int CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS = 1000;
inline constexpr int CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS = 1001;
inline constexpr int CUDNN_ATTR_VARIANT_PACK_WORKSPACE = 1003;
inline constexpr int CUDNN_ATTR_ENGINE_GLOBAL_INDEX = 1301;
inline constexpr int CUDNN_ATTR_ENGINE_NUMERICAL_NOTE = 1303;
inline constexpr int CUDNN_ATTR_MATMUL_COMP_TYPE = 1500;
inline constexpr int CUDNN_ATTR_OPERATION_MATMUL_ADESC = 1520;
inline constexpr int CUDNN_ATTR_OPERATION_MATMUL_BDESC = 1521;
inline constexpr int CUDNN_ATTR_OPERATION_MATMUL_CDESC = 1522;
inline constexpr int CUDNN_ATTR_OPERATION_MATMUL_DESC = 1523;
inline constexpr int CUDNN_ATTR_REDUCTION_OPERATOR = 1600;
inline constexpr int CUDNN_ATTR_REDUCTION_COMP_TYPE = 1601;
inline constexpr int CUDNN_ATTR_OPERATION_REDUCTION_XDESC = 1610;
inline constexpr int CUDNN_ATTR_OPERATION_REDUCTION_YDESC = 1611;
inline constexpr int CUDNN_ATTR_OPERATION_REDUCTION_DESC = 1612;
inline constexpr int CUDNN_ATTR_OPERATION_RESHAPE_XDESC = 2200;
inline constexpr int CUDNN_ATTR_OPERATION_RESHAPE_YDESC = 2201;

// Values of attributes.
inline constexpr int CUDNN_CROSS_CORRELATION = 1;
inline constexpr int CUDNN_HEUR_MODE_FALLBACK = 2;
inline constexpr int CUDNN_HEUR_MODE_A = 3;
inline constexpr int CUDNN_NUMERICAL_NOTE_TENSOR_CORE = 0;
inline constexpr int CUDNN_NUMERICAL_NOTE_DOWN_CONVERT_INPUTS = 1;
inline constexpr int CUDNN_NUMERICAL_NOTE_REDUCED_PRECISION_REDUCTION = 2;
inline constexpr int CUDNN_NUMERICAL_NOTE_FFT = 3;
inline constexpr int CUDNN_NUMERICAL_NOTE_NONDETERMINISTIC = 4;
inline constexpr int CUDNN_NUMERICAL_NOTE_WINOGRAD = 5;
inline constexpr int CUDNN_POINTWISE_ADD = 0;
inline constexpr int CUDNN_POINTWISE_MUL = 1;
inline constexpr int CUDNN_POINTWISE_DIV = 6;
inline constexpr int CUDNN_POINTWISE_SUB = 9;
inline constexpr int CUDNN_POINTWISE_EXP = 13;
inline constexpr int CUDNN_POINTWISE_LOG = 15;
inline constexpr int CUDNN_POINTWISE_CMP_GE = 303;
inline constexpr int CUDNN_POINTWISE_GEN_INDEX = 501;
inline constexpr int CUDNN_POINTWISE_BINARY_SELECT = 601;
inline constexpr int CUDNN_REDUCE_TENSOR_ADD = 0;
inline constexpr int CUDNN_REDUCE_TENSOR_MAX = 3;

struct Cudnn {
  size_t (*cudnnGetVersion)();
  const char* (*cudnnGetErrorString)(cudnnStatus_t status);
  cudnnStatus_t (*cudnnCreate)(cudnnHandle_t* handle);
  cudnnStatus_t (*cudnnDestroy)(cudnnHandle_t handle);
  cudnnStatus_t (*cudnnSetStream)(cudnnHandle_t handle, CUstream stream);
  cudnnStatus_t (*cudnnBackendCreateDescriptor)(int type, cudnnBackendDescriptor_t* descriptor);
  cudnnStatus_t (*cudnnBackendDestroyDescriptor)(cudnnBackendDescriptor_t descriptor);
  cudnnStatus_t (*cudnnBackendFinalize)(cudnnBackendDescriptor_t descriptor);
  cudnnStatus_t (*cudnnBackendSetAttribute)(cudnnBackendDescriptor_t descriptor, int attribute,
                                            int type, int64_t count, const void* values);
  cudnnStatus_t (*cudnnBackendGetAttribute)(cudnnBackendDescriptor_t descriptor, int attribute,
                                            int type, int64_t most, int64_t* count, void* values);
  cudnnStatus_t (*cudnnBackendExecute)(cudnnHandle_t handle, cudnnBackendDescriptor_t plan,
                                       cudnnBackendDescriptor_t pack);
};

/// Calls visit(name, member) for each function.
template <class Visit>
void visit_functions(Cudnn& api, Visit&& visit) {
  visit("cudnnGetVersion", api.cudnnGetVersion);
  visit("cudnnGetErrorString", api.cudnnGetErrorString);
  visit("cudnnCreate", api.cudnnCreate);
  visit("cudnnDestroy", api.cudnnDestroy);
  visit("cudnnSetStream", api.cudnnSetStream);
  visit("cudnnBackendCreateDescriptor", api.cudnnBackendCreateDescriptor);
  visit("cudnnBackendDestroyDescriptor", api.cudnnBackendDestroyDescriptor);
  visit("cudnnBackendFinalize", api.cudnnBackendFinalize);
  visit("cudnnBackendSetAttribute", api.cudnnBackendSetAttribute);
  visit("cudnnBackendGetAttribute", api.cudnnBackendGetAttribute);
  visit("cudnnBackendExecute", api.cudnnBackendExecute);
}

}  // namespace paddle::cuda
