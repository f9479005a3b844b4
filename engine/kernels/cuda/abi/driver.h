#pragma once
// The part of the CUDA driver's interface that we call, declared here so that building needs no
// CUDA. Names, values and signatures are those of `cuda.h`; tests compare them with the real header
// where it is installed.

#include <cstddef>
#include <cstdint>

namespace paddle::cuda {

using CUresult = int;
using CUdevice = int;
using CUdeviceptr = unsigned long long;
using CUcontext = struct CUctx_st*;
using CUstream = struct CUstream_st*;
using CUevent = struct CUevent_st*;
using CUmodule = struct CUmod_st*;
using CUfunction = struct CUfunc_st*;
using CUgraph = struct CUgraph_st*;
using CUgraphExec = struct CUgraphExec_st*;
using CUmemoryPool = struct CUmemPoolHandle_st*;

inline constexpr CUresult CUDA_SUCCESS = 0;
inline constexpr CUresult CUDA_ERROR_OUT_OF_MEMORY = 2;
inline constexpr CUresult CUDA_ERROR_NO_DEVICE = 100;
inline constexpr CUresult CUDA_ERROR_INVALID_HANDLE = 400;
inline constexpr CUresult CUDA_ERROR_NOT_READY = 600;
inline constexpr CUresult CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED = 704;

inline constexpr int CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR = 75;
inline constexpr int CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR = 76;
inline constexpr int CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT = 16;

inline constexpr unsigned CU_STREAM_NON_BLOCKING = 1;
inline constexpr unsigned CU_EVENT_DISABLE_TIMING = 2;
inline constexpr unsigned CU_MEMHOSTALLOC_PORTABLE = 1;
inline constexpr unsigned CU_MEMHOSTREGISTER_PORTABLE = 1;

inline constexpr int CU_STREAM_CAPTURE_MODE_THREAD_LOCAL = 1;
inline constexpr int CU_STREAM_CAPTURE_MODE_RELAXED = 2;
inline constexpr int CU_MEMPOOL_ATTR_RELEASE_THRESHOLD = 4;

/// The functions, by the names under which the driver exports them.
struct Driver {
  CUresult (*cuInit)(unsigned flags);
  CUresult (*cuDriverGetVersion)(int* version);
  CUresult (*cuGetErrorName)(CUresult error, const char** name);
  CUresult (*cuGetErrorString)(CUresult error, const char** text);
  CUresult (*cuDeviceGetCount)(int* count);
  CUresult (*cuDeviceGet)(CUdevice* device, int ordinal);
  CUresult (*cuDeviceGetName)(char* name, int size, CUdevice device);
  CUresult (*cuDeviceGetAttribute)(int* value, int attribute, CUdevice device);
  CUresult (*cuDevicePrimaryCtxRetain)(CUcontext* context, CUdevice device);
  CUresult (*cuCtxSetCurrent)(CUcontext context);
  CUresult (*cuMemGetInfo)(size_t* available, size_t* total);
  CUresult (*cuMemAlloc)(CUdeviceptr* memory, size_t bytes);
  CUresult (*cuMemFree)(CUdeviceptr memory);
  CUresult (*cuMemHostAlloc)(void** memory, size_t bytes, unsigned flags);
  CUresult (*cuMemFreeHost)(void* memory);
  CUresult (*cuMemcpyHtoDAsync)(CUdeviceptr to, const void* from, size_t bytes, CUstream stream);
  CUresult (*cuMemcpyDtoHAsync)(void* to, CUdeviceptr from, size_t bytes, CUstream stream);
  CUresult (*cuMemcpyDtoDAsync)(CUdeviceptr to, CUdeviceptr from, size_t bytes, CUstream stream);
  CUresult (*cuMemsetD8Async)(CUdeviceptr to, unsigned char byte, size_t bytes, CUstream stream);
  CUresult (*cuStreamCreate)(CUstream* stream, unsigned flags);
  CUresult (*cuStreamDestroy)(CUstream stream);
  CUresult (*cuStreamSynchronize)(CUstream stream);
  CUresult (*cuStreamWaitEvent)(CUstream stream, CUevent event, unsigned flags);
  CUresult (*cuEventCreate)(CUevent* event, unsigned flags);
  CUresult (*cuEventDestroy)(CUevent event);
  CUresult (*cuEventRecord)(CUevent event, CUstream stream);
  CUresult (*cuEventQuery)(CUevent event);
  CUresult (*cuEventSynchronize)(CUevent event);
  CUresult (*cuEventElapsedTime)(float* milliseconds, CUevent begin, CUevent end);
  CUresult (*cuDeviceCanAccessPeer)(int* can_access, CUdevice device, CUdevice peer);
  CUresult (*cuCtxEnablePeerAccess)(CUcontext peer, unsigned flags);
  CUresult (*cuMemcpyPeerAsync)(CUdeviceptr to, CUcontext to_context, CUdeviceptr from,
                                CUcontext from_context, size_t bytes, CUstream stream);
  CUresult (*cuMemAllocAsync)(CUdeviceptr* memory, size_t bytes, CUstream stream);
  CUresult (*cuMemFreeAsync)(CUdeviceptr memory, CUstream stream);
  CUresult (*cuDeviceGetDefaultMemPool)(CUmemoryPool* pool, CUdevice device);
  CUresult (*cuMemPoolSetAttribute)(CUmemoryPool pool, int attribute, void* value);
  CUresult (*cuMemPoolTrimTo)(CUmemoryPool pool, size_t keep);
  CUresult (*cuMemHostRegister)(void* memory, size_t bytes, unsigned flags);
  CUresult (*cuMemHostUnregister)(void* memory);
  CUresult (*cuStreamBeginCapture)(CUstream stream, int mode);
  CUresult (*cuStreamEndCapture)(CUstream stream, CUgraph* graph);
  CUresult (*cuThreadExchangeStreamCaptureMode)(int* mode);
  CUresult (*cuGraphInstantiateWithFlags)(CUgraphExec* graph, CUgraph recorded,
                                          unsigned long long flags);
  CUresult (*cuGraphLaunch)(CUgraphExec graph, CUstream stream);
  CUresult (*cuGraphExecDestroy)(CUgraphExec graph);
  CUresult (*cuGraphDestroy)(CUgraph graph);
  CUresult (*cuModuleLoadData)(CUmodule* module, const void* image);
  CUresult (*cuModuleUnload)(CUmodule module);
  CUresult (*cuModuleGetFunction)(CUfunction* function, CUmodule module, const char* name);
  CUresult (*cuLaunchKernel)(CUfunction function, unsigned grid_x, unsigned grid_y, unsigned grid_z,
                             unsigned block_x, unsigned block_y, unsigned block_z,
                             unsigned shared_bytes, CUstream stream, void** parameters,
                             void** extra);
};

/// Calls visit(name of the export, member) for each function. Some have a second version, which
/// newer programs use.
template <class Visit>
void visit_functions(Driver& driver, Visit&& visit) {
  visit("cuInit", driver.cuInit);
  visit("cuDriverGetVersion", driver.cuDriverGetVersion);
  visit("cuGetErrorName", driver.cuGetErrorName);
  visit("cuGetErrorString", driver.cuGetErrorString);
  visit("cuDeviceGetCount", driver.cuDeviceGetCount);
  visit("cuDeviceGet", driver.cuDeviceGet);
  visit("cuDeviceGetName", driver.cuDeviceGetName);
  visit("cuDeviceGetAttribute", driver.cuDeviceGetAttribute);
  visit("cuDevicePrimaryCtxRetain", driver.cuDevicePrimaryCtxRetain);
  visit("cuCtxSetCurrent", driver.cuCtxSetCurrent);
  visit("cuMemGetInfo_v2", driver.cuMemGetInfo);
  visit("cuMemAlloc_v2", driver.cuMemAlloc);
  visit("cuMemFree_v2", driver.cuMemFree);
  visit("cuMemHostAlloc", driver.cuMemHostAlloc);
  visit("cuMemFreeHost", driver.cuMemFreeHost);
  visit("cuMemcpyHtoDAsync_v2", driver.cuMemcpyHtoDAsync);
  visit("cuMemcpyDtoHAsync_v2", driver.cuMemcpyDtoHAsync);
  visit("cuMemcpyDtoDAsync_v2", driver.cuMemcpyDtoDAsync);
  visit("cuMemsetD8Async", driver.cuMemsetD8Async);
  visit("cuStreamCreate", driver.cuStreamCreate);
  visit("cuStreamDestroy_v2", driver.cuStreamDestroy);
  visit("cuStreamSynchronize", driver.cuStreamSynchronize);
  visit("cuStreamWaitEvent", driver.cuStreamWaitEvent);
  visit("cuEventCreate", driver.cuEventCreate);
  visit("cuEventDestroy_v2", driver.cuEventDestroy);
  visit("cuEventRecord", driver.cuEventRecord);
  visit("cuEventQuery", driver.cuEventQuery);
  visit("cuEventSynchronize", driver.cuEventSynchronize);
  visit("cuEventElapsedTime", driver.cuEventElapsedTime);
  visit("cuDeviceCanAccessPeer", driver.cuDeviceCanAccessPeer);
  visit("cuCtxEnablePeerAccess", driver.cuCtxEnablePeerAccess);
  visit("cuMemcpyPeerAsync", driver.cuMemcpyPeerAsync);
  visit("cuMemAllocAsync", driver.cuMemAllocAsync);
  visit("cuMemFreeAsync", driver.cuMemFreeAsync);
  visit("cuDeviceGetDefaultMemPool", driver.cuDeviceGetDefaultMemPool);
  visit("cuMemPoolSetAttribute", driver.cuMemPoolSetAttribute);
  visit("cuMemPoolTrimTo", driver.cuMemPoolTrimTo);
  visit("cuMemHostRegister_v2", driver.cuMemHostRegister);
  visit("cuMemHostUnregister", driver.cuMemHostUnregister);
  visit("cuStreamBeginCapture_v2", driver.cuStreamBeginCapture);
  visit("cuStreamEndCapture", driver.cuStreamEndCapture);
  visit("cuThreadExchangeStreamCaptureMode", driver.cuThreadExchangeStreamCaptureMode);
  visit("cuGraphInstantiateWithFlags", driver.cuGraphInstantiateWithFlags);
  visit("cuGraphLaunch", driver.cuGraphLaunch);
  visit("cuGraphExecDestroy", driver.cuGraphExecDestroy);
  visit("cuGraphDestroy", driver.cuGraphDestroy);
  visit("cuModuleLoadData", driver.cuModuleLoadData);
  visit("cuModuleUnload", driver.cuModuleUnload);
  visit("cuModuleGetFunction", driver.cuModuleGetFunction);
  visit("cuLaunchKernel", driver.cuLaunchKernel);
}

}  // namespace paddle::cuda
