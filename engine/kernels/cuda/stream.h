#pragma once
// Streams of CUDA devices, as the device table hands them out, with the records of errors that
// kernels find in their operands.

#include <atomic>
#include <cstdint>
#include <string>

#include "kernels/cuda/abi/driver.h"
#include "tensor/device_api.h"

/// A queue of work on one GPU.
struct paddle_stream_s {
  paddle::cuda::CUstream handle = nullptr;
  int device = 0;
  /// A DataError (errors.h) in memory of the device.
  paddle::cuda::CUdeviceptr error = 0;
  void* error_on_host = nullptr;
  /// Whether kernels that can record an error were queued since the last wait.
  std::atomic<bool> may_fail = false;
};
