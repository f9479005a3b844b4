#pragma once
// Memory of CUDA devices. Blocks are kept for later allocations of their size: the driver's own
// functions wait for the GPU. A released block is handed out again when the work that was queued on
// all streams of its device is done.

#include <cstddef>

#include "kernels/cuda/stream.h"

namespace paddle::cuda {

/// An address of device memory as the driver takes it, and as kernels and arrays hold it.
inline CUdeviceptr address_of(const void* memory) { return reinterpret_cast<CUdeviceptr>(memory); }
inline void* pointer_to(CUdeviceptr address) {
  return reinterpret_cast<void*>(address);  // NOLINT(performance-no-int-to-ptr)
}

/// kDevice if the GPU has not enough memory.
void* allocate_memory(int device, size_t bytes);
void release_memory(int device, void* memory);
/// Bytes that are kept for later allocations.
size_t kept_bytes(int device);

/// Frees kept blocks, except for about `keep` bytes.
void free_kept(int device, size_t keep);

/// Released blocks wait for the work on these streams.
void add_stream(paddle_stream stream);
void remove_stream(paddle_stream stream);
/// Whether the stream was added and not removed.
bool is_stream(paddle_stream stream);

/// Until `take_released` is called as often, released blocks are only noted: no event is recorded
/// on a stream.
void hold_released(int device);
void take_released(int device);

}  // namespace paddle::cuda
