#pragma once
// Streams of CUDA devices, as the device table hands them out, with the records of errors that
// kernels find in their operands.

#include <atomic>
#include <cstdint>
#include <string>
#include <vector>

#include "kernels/cuda/abi/driver.h"
#include "paddle/plugin/device.h"
#include "tensor/device_counts.h"

/// A queue of work on one GPU.
struct paddle_stream_s {
  paddle::cuda::CUstream handle = nullptr;
  int device = 0;
  /// A DataError (errors.h) in memory of the device.
  paddle::cuda::CUdeviceptr error = 0;
  void* error_on_host = nullptr;
  /// kStreamCounters 32-bit counters, in the same memory; they are 0 between kernels.
  paddle::cuda::CUdeviceptr counters = 0;
  /// Whether kernels that can record an error were queued since the last wait.
  std::atomic<bool> may_fail = false;

  /// While work is recorded (graph.h):
  std::atomic<bool> is_recording = false;
  std::string spoiled;          ///< the first call that was wrong then
  bool could_fail = false;      ///< `may_fail` before
  paddle::CopyCounts recorded;  ///< copies
  std::vector<void*> memory;    ///< that was allocated
};

namespace paddle::cuda {

/// A kernel whose blocks join their sums has a counter for each group of such blocks.
inline constexpr int64_t kStreamCounters = 1024;

/// Counts of the work of the GPU so far.
DeviceCounts& counts_of(int device);

}  // namespace paddle::cuda
