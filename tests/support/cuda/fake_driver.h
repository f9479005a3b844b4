#pragma once
// Functions of the stand-in for the driver, besides those of the driver: symbols of the
// library, which a test in the same process looks up.

#include <cstdint>

/// Counts of objects that were created and not destroyed.
struct FakeCudaObjects {
  int64_t blocks = 0;       ///< of device memory
  int64_t host_blocks = 0;  ///< of the driver's host memory, and registered ones
  int64_t streams = 0, events = 0, graphs = 0, modules = 0;
  bool operator==(const FakeCudaObjects&) const = default;
};

extern "C" {
/// Lets a call fail after `after` that succeed, once or, if it `lasts`, each time, and ends the
/// effects of an earlier error.
/// Calls of a name that does not exist never fail.
void fake_cuda_plant(const char* call, uint64_t after, bool lasts);
/// The number of calls so far.
uint64_t fake_cuda_calls(const char* call);
/// The number of launches of kernels of this name so far.
uint64_t fake_cuda_launches(const char* kernel);
void fake_cuda_objects(FakeCudaObjects* objects);
/// For stand-ins of libraries: queues run(data) on a stream, or records it, as a kernel of this
/// name. `data` is copied. The driver's error, or 0.
int fake_cuda_queue(void* stream, const char* name, void (*run)(const void* data), const void* data,
                    uint64_t bytes);
/// The number of the GPU whose memory these bytes are in, or -1.
int fake_cuda_device_of(const void* at, uint64_t bytes);
}
