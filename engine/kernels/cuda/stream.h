#pragma once
// Streams of CUDA devices, as the device table hands them out, with the records of errors that
// kernels find in their operands.

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "kernels/cuda/abi/driver.h"
#include "paddle/plugin/device.h"
#include "tensor/device_counts.h"

namespace paddle::cuda {

/// Where kernels of a stream record an error of their operands (errors.h), with the stream's
/// counters. Graphs that were recorded on the stream write to it, too, wherever they are launched,
/// and keep it.
struct ErrorMemory {
  explicit ErrorMemory(int of) : device(of) {}
  ~ErrorMemory();
  ErrorMemory(const ErrorMemory&) = delete;
  ErrorMemory& operator=(const ErrorMemory&) = delete;

  int device;
  CUdeviceptr on_device = 0;  ///< a DataError, and the stream's counters after it
  void* on_host = nullptr;    ///< its copy
};
using ErrorMemories = std::vector<std::shared_ptr<ErrorMemory>>;

}  // namespace paddle::cuda

/// A queue of work on one GPU.
struct paddle_stream_s {
  paddle::cuda::CUstream handle = nullptr;
  int device = 0;
  std::shared_ptr<paddle::cuda::ErrorMemory> errors;
  /// Those of graphs that were launched since the last wait, if they are others.
  paddle::cuda::ErrorMemories errors_of_graphs;
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
