// Compiled, not run: our declarations of the driver and of NVRTC against the real headers. Includes
// ours first, since the real ones rename functions by macros.

#include "alike.h"
#include "kernels/cuda/abi/driver.h"
#include "kernels/cuda/abi/nvrtc.h"

namespace {

#define FUNCTIONS(visit)                                                                           \
  visit(cuInit, cuInit) visit(cuDriverGetVersion, cuDriverGetVersion) visit(                       \
      cuGetErrorName, cuGetErrorName) visit(cuGetErrorString,                                      \
                                            cuGetErrorString) visit(cuDeviceGetCount,              \
                                                                    cuDeviceGetCount)              \
      visit(cuDeviceGet, cuDeviceGet) visit(cuDeviceGetName, cuDeviceGetName) visit(               \
          cuDeviceGetAttribute,                                                                    \
          cuDeviceGetAttribute) visit(cuDevicePrimaryCtxRetain,                                    \
                                      cuDevicePrimaryCtxRetain) visit(cuCtxSetCurrent,             \
                                                                      cuCtxSetCurrent)             \
          visit(cuMemGetInfo, cuMemGetInfo_v2) visit(cuMemAlloc, cuMemAlloc_v2) visit(             \
              cuMemFree, cuMemFree_v2) visit(cuMemHostAlloc, cuMemHostAlloc) visit(cuMemFreeHost,  \
                                                                                   cuMemFreeHost)  \
              visit(cuMemcpyHtoDAsync, cuMemcpyHtoDAsync_v2) visit(                                \
                  cuMemcpyDtoHAsync,                                                               \
                  cuMemcpyDtoHAsync_v2) visit(cuMemcpyDtoDAsync,                                   \
                                              cuMemcpyDtoDAsync_v2) visit(cuMemsetD8Async,         \
                                                                          cuMemsetD8Async)         \
                  visit(cuStreamCreate, cuStreamCreate) visit(                                     \
                      cuStreamDestroy,                                                             \
                      cuStreamDestroy_v2) visit(cuStreamSynchronize,                               \
                                                cuStreamSynchronize) visit(cuStreamWaitEvent,      \
                                                                           cuStreamWaitEvent)      \
                      visit(cuEventCreate, cuEventCreate) visit(                                   \
                          cuEventDestroy,                                                          \
                          cuEventDestroy_v2) visit(cuEventRecord,                                  \
                                                   cuEventRecord) visit(cuEventQuery,              \
                                                                        cuEventQuery)              \
                          visit(cuEventSynchronize, cuEventSynchronize) visit(                     \
                              cuModuleLoadData,                                                    \
                              cuModuleLoadData) visit(cuModuleUnload,                              \
                                                      cuModuleUnload) visit(cuModuleGetFunction,   \
                                                                            cuModuleGetFunction)   \
                              visit(cuLaunchKernel, cuLaunchKernel) visit(                         \
                                  cuEventElapsedTime,                                              \
                                  cuEventElapsedTime) visit(cuDeviceCanAccessPeer,                 \
                                                            cuDeviceCanAccessPeer)                 \
                                  visit(cuCtxEnablePeerAccess, cuCtxEnablePeerAccess) visit(       \
                                      cuMemcpyPeerAsync, cuMemcpyPeerAsync) visit(cuMemAllocAsync, \
                                                                                  cuMemAllocAsync) \
                                      visit(cuMemFreeAsync, cuMemFreeAsync) visit(                 \
                                          cuDeviceGetDefaultMemPool,                               \
                                          cuDeviceGetDefaultMemPool) visit(cuMemPoolSetAttribute,  \
                                                                           cuMemPoolSetAttribute)  \
                                          visit(cuMemPoolTrimTo, cuMemPoolTrimTo) visit(           \
                                              cuMemHostRegister,                                   \
                                              cuMemHostRegister_v2) visit(cuMemHostUnregister,     \
                                                                          cuMemHostUnregister)     \
                                              visit(cuStreamBeginCapture, cuStreamBeginCapture_v2) \
                                                  visit(cuStreamEndCapture, cuStreamEndCapture)    \
                                                      visit(cuThreadExchangeStreamCaptureMode,     \
                                                            cuThreadExchangeStreamCaptureMode)     \
                                                          visit(cuGraphInstantiateWithFlags,       \
                                                                cuGraphInstantiateWithFlags)       \
                                                              visit(cuGraphLaunch, cuGraphLaunch)  \
                                                                  visit(cuGraphExecDestroy,        \
                                                                        cuGraphExecDestroy)        \
                                                                      visit(cuGraphDestroy,        \
                                                                            cuGraphDestroy)
#define NVRTC_FUNCTIONS(visit)                                                           \
  visit(nvrtcVersion) visit(nvrtcGetErrorString) visit(nvrtcGetNumSupportedArchs)        \
      visit(nvrtcGetSupportedArchs) visit(nvrtcCreateProgram) visit(nvrtcDestroyProgram) \
          visit(nvrtcCompileProgram) visit(nvrtcGetCUBINSize) visit(nvrtcGetCUBIN)       \
              visit(nvrtcGetProgramLogSize) visit(nvrtcGetProgramLog)
#define VALUES(visit)                                                                            \
  visit(CUDA_SUCCESS) visit(CUDA_ERROR_OUT_OF_MEMORY) visit(CUDA_ERROR_NO_DEVICE)                \
      visit(CUDA_ERROR_NOT_READY) visit(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR)            \
          visit(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR)                                    \
              visit(CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT) visit(CU_STREAM_NON_BLOCKING)      \
                  visit(CUDA_ERROR_INVALID_HANDLE) visit(CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED) \
                      visit(CU_STREAM_CAPTURE_MODE_THREAD_LOCAL)                                 \
                          visit(CU_STREAM_CAPTURE_MODE_RELAXED)                                  \
                              visit(CU_MEMPOOL_ATTR_RELEASE_THRESHOLD)                           \
                                  visit(CU_EVENT_DISABLE_TIMING) visit(NVRTC_SUCCESS)            \
                                      visit(NVRTC_ERROR_COMPILATION)

#define OURS(ours, theirs) using ours_##ours = decltype(paddle::cuda::Driver::ours);
FUNCTIONS(OURS)
#define OURS_NVRTC(name) using ours_##name = decltype(paddle::cuda::Nvrtc::name);
NVRTC_FUNCTIONS(OURS_NVRTC)
#define OUR_VALUE(name) constexpr long long value_##name = paddle::cuda::name;
VALUES(OUR_VALUE)
constexpr long long value_portable = paddle::cuda::CU_MEMHOSTALLOC_PORTABLE;
constexpr long long value_registered_portable = paddle::cuda::CU_MEMHOSTREGISTER_PORTABLE;

}  // namespace

#include <cuda.h>
#include <nvrtc.h>

#define SAME(ours, theirs) \
  static_assert(Alike<ours_##ours, decltype(&::theirs)>::value, "the signature of " #theirs);
FUNCTIONS(SAME)
#define SAME_NVRTC(name) \
  static_assert(Alike<ours_##name, decltype(&::name)>::value, "the signature of " #name);
NVRTC_FUNCTIONS(SAME_NVRTC)
#define SAME_VALUE(name) static_assert(value_##name == static_cast<long long>(::name), #name);
VALUES(SAME_VALUE)
static_assert(value_portable == CU_MEMHOSTALLOC_PORTABLE);
static_assert(value_registered_portable == CU_MEMHOSTREGISTER_PORTABLE);
