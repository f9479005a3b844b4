// The CPU as a device: kind 0. Kernels of the CPU run at once and take no stream, so its streams
// and events have nothing to wait for.

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <string>

#include "base/error.h"
#include "base/limits.h"
#include "base/parallel.h"
#include "tensor/device_counts.h"
#include "tensor/device_functions.h"

namespace paddle {
namespace {

constexpr size_t kCpuAlignment = 256;

thread_local std::string error_text;

DeviceCounts& counts() {
  static DeviceCounts all;
  return all;
}

/// A stream and an event that are always done.
constexpr char kDone = 0;
paddle_stream done_stream() { return reinterpret_cast<paddle_stream>(const_cast<char*>(&kDone)); }
paddle_event done_event() { return reinterpret_cast<paddle_event>(const_cast<char*>(&kDone)); }

int allocate(size_t bytes, void** memory) {
  const size_t rounded =
      (std::max<size_t>(bytes, 1) + kCpuAlignment - 1) / kCpuAlignment * kCpuAlignment;
  *memory = rounded >= bytes ? std::aligned_alloc(kCpuAlignment, rounded) : nullptr;
  ++counts().allocations;
  if (*memory) return PADDLE_OK;
  error_text = "out of memory: cannot allocate " + human_bytes(bytes);
  return PADDLE_DEVICE;
}

int release(void* memory) {
  std::free(memory);
  return PADDLE_OK;
}

int properties(int, paddle_device_properties* out) {
  paddle_device_properties all{};
  all.flags = PADDLE_DEVICE_HOST_ACCESSIBLE | PADDLE_DEVICE_REPEATABLE;
  all.name = "cpu";
  all.memory = all.largest_allocation = static_cast<uint64_t>(limits().memory);
  all.alignment = kCpuAlignment;
  all.compute_units = static_cast<uint32_t>(thread_count());
  all.dlpack_type = 1;  // kDLCPU
  return fill_in(*out, all);
}

int statistics(int, paddle_device_statistics* out) { return fill_in(*out, counts().statistics()); }

paddle_device_api make_functions() {
  paddle_device_api api{};
  api.struct_size = sizeof api;
  api.version = PADDLE_DEVICE_API_VERSION;
  api.name = "cpu";
  api.device_count = [] { return 1; };
  api.memory_info = [](int, size_t* available, size_t* total) -> int {
    *available = *total = static_cast<size_t>(limits().memory);
    return PADDLE_OK;
  };
  api.allocate = [](int, size_t bytes, void** memory) { return allocate(bytes, memory); };
  api.release = [](int, void* memory) { return release(memory); };
  api.allocate_host = allocate;
  api.release_host = release;
  api.create_stream = [](int, paddle_stream* stream) -> int {
    *stream = done_stream();
    return PADDLE_OK;
  };
  api.destroy_stream = [](paddle_stream) -> int { return PADDLE_OK; };
  api.synchronize_stream = [](paddle_stream) -> int {
    ++counts().waits;
    return PADDLE_OK;
  };
  api.create_event = [](int, paddle_event* event) -> int {
    *event = done_event();
    return PADDLE_OK;
  };
  api.destroy_event = [](paddle_event) -> int { return PADDLE_OK; };
  api.record_event = [](paddle_event, paddle_stream) -> int { return PADDLE_OK; };
  api.wait_event = [](paddle_stream, paddle_event) -> int { return PADDLE_OK; };
  api.synchronize_event = [](paddle_event) -> int { return PADDLE_OK; };
  api.copy = [](paddle_stream, void* to, const void* from, size_t bytes, int kind) -> int {
    if (kind < PADDLE_COPY_TO_DEVICE || kind > PADDLE_COPY_ON_DEVICE) {
      error_text = "copy: unknown kind";
      return PADDLE_USAGE;
    }
    if (bytes > 0) std::memmove(to, from, bytes);
    counts().add_copy(kind, bytes);
    return PADDLE_OK;
  };
  api.fill = [](paddle_stream, void* to, int byte, size_t bytes) -> int {
    if (bytes > 0) std::memset(to, byte, bytes);
    return PADDLE_OK;
  };
  api.last_error = [] { return error_text.c_str(); };
  api.last_error_location = [] { return ""; };
  api.properties = properties;
  api.statistics = statistics;
  api.query_event = [](paddle_event, int* reached) -> int {
    *reached = 1;
    return PADDLE_OK;
  };
  return api;
}

}  // namespace

const paddle_device_api& cpu_device_functions() {
  static const paddle_device_api api = make_functions();
  return api;
}

}  // namespace paddle
