// The table of device functions of CUDA.

#include <algorithm>
#include <array>
#include <cstring>
#include <map>
#include <memory>
#include <mutex>

#include "kernels/cuda/context.h"
#include "kernels/cuda/cuda.h"
#include "kernels/cuda/errors.h"
#include "kernels/cuda/graph.h"
#include "kernels/cuda/memory.h"
#include "paddle/plugin/device.h"

struct paddle_event_s {
  paddle::cuda::CUevent handle = nullptr;
  int device = 0;
  bool timed = false;
};

namespace paddle::cuda {

DeviceCounts& counts_of(int device) {
  static auto& all = *new std::array<DeviceCounts, kMaxGpus>;
  return all.at(static_cast<size_t>(device));
}

namespace {

thread_local std::string error_text;
thread_local std::string error_location;

/// Runs the body and turns its exception into a status.
template <class Body>
int guarded(Body&& body) {
  try {
    body();
    return 0;
  } catch (const Error& e) {
    error_text = e.message();
    error_location = e.location().text();
    return static_cast<int>(e.code());
  } catch (const std::exception& e) {
    error_text = e.what();
    error_location.clear();
    return static_cast<int>(ErrorCode::kInternal);
  }
}

int open_cuda() {
  return guarded([] {
    if (gpu_count() == 0)
      fail(ErrorCode::kDevice, "cuda: no NVIDIA GPU was found by ", driver_library().path);
  });
}

int device_count() {
  int count = 0;
  guarded([&] { count = gpu_count(); });
  return count;
}

int memory_info(int device, size_t* available, size_t* total) {
  return guarded([&] {
    use_gpu(device);
    check(driver().cuMemGetInfo(available, total), "cuMemGetInfo");
    *available += kept_bytes(device);
  });
}

int allocate(int device, size_t bytes, void** memory) {
  return guarded([&] {
    reject_while_recording("allocate");
    *memory = allocate_memory(device, bytes);
    ++counts_of(device).allocations;
  });
}

int release(int device, void* memory) {
  return guarded([&] { release_memory(device, memory); });
}

int allocate_host(size_t bytes, void** memory) {
  return guarded([&] {
    use_gpu(0);
    check(driver().cuMemHostAlloc(memory, std::max<size_t>(bytes, 1), CU_MEMHOSTALLOC_PORTABLE),
          "cuMemHostAlloc");
  });
}

int release_host(void* memory) {
  return guarded([&] {
    use_gpu(0);
    check(driver().cuMemFreeHost(memory), "cuMemFreeHost");
  });
}

int pin_host(void* memory, size_t bytes) {
  return guarded([&] {
    use_gpu(0);
    check(driver().cuMemHostRegister(memory, bytes, CU_MEMHOSTREGISTER_PORTABLE),
          "cuMemHostRegister");
  });
}

int unpin_host(void* memory) {
  return guarded([&] {
    use_gpu(0);
    check(driver().cuMemHostUnregister(memory), "cuMemHostUnregister");
  });
}

/// The driver's pool of a GPU, which keeps what is released.
CUmemoryPool memory_pool(int device) {
  static auto& mutex = *new std::mutex;
  static auto& pools = *new std::map<int, CUmemoryPool>;
  const std::lock_guard lock(mutex);
  CUmemoryPool& pool = pools[device];
  if (pool) return pool;
  CUmemoryPool found = nullptr;
  check(driver().cuDeviceGetDefaultMemPool(&found, device_handle(device)),
        "cuDeviceGetDefaultMemPool");
  uint64_t all = UINT64_MAX;
  check(driver().cuMemPoolSetAttribute(found, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &all),
        "cuMemPoolSetAttribute");
  return pool = found;
}

int allocate_queued(paddle_stream stream, size_t bytes, void** memory) {
  return guarded([&] {
    use_gpu(stream->device);
    ++counts_of(stream->device).allocations;
    if (stream->is_recording) {
      *memory = allocate_for_recording(stream, bytes);
      return;
    }
    memory_pool(stream->device);
    CUdeviceptr address = 0;
    check(driver().cuMemAllocAsync(&address, std::max<size_t>(bytes, 1), stream->handle),
          "cuMemAllocAsync");
    *memory = pointer_to(address);
  });
}

int release_queued(paddle_stream stream, void* memory) {
  return guarded([&] {
    if (stream->is_recording) return;  // it belongs to the record
    use_gpu(stream->device);
    check(driver().cuMemFreeAsync(address_of(memory), stream->handle), "cuMemFreeAsync");
  });
}

int trim_pool(int device, size_t keep) {
  return guarded([&] {
    use_gpu(device);
    check(driver().cuMemPoolTrimTo(memory_pool(device), keep), "cuMemPoolTrimTo");
    free_kept(device, keep);
  });
}

/// Destroys what a stream has, whichever calls fail, and then throws the first error if `report`.
void destroy_parts(paddle_stream_s& stream, bool report) {
  const Driver& api = driver();
  CUresult first = CUDA_SUCCESS;
  const char* failed = nullptr;
  const auto note = [&](CUresult result, const char* call) {
    if (result == CUDA_SUCCESS || failed) return;
    first = result;
    failed = call;
  };
  if (stream.handle) note(api.cuStreamSynchronize(stream.handle), "cuStreamSynchronize");
  remove_stream(&stream);
  stream.errors.reset();
  stream.errors_of_graphs.clear();
  if (stream.handle) note(api.cuStreamDestroy(stream.handle), "cuStreamDestroy");
  if (failed && report) check(first, failed);
}

int create_stream(int device, paddle_stream* stream) {
  return guarded([&] {
    use_gpu(device);
    const Driver& api = driver();
    auto made = std::make_unique<paddle_stream_s>();
    made->device = device;
    try {
      check(api.cuStreamCreate(&made->handle, CU_STREAM_NON_BLOCKING), "cuStreamCreate");
      constexpr size_t kCounterOffset = 256;
      constexpr size_t kBytes = kCounterOffset + kStreamCounters * sizeof(uint32_t);
      made->errors = std::make_shared<ErrorMemory>(device);
      made->errors->on_device = address_of(allocate_memory(device, kBytes));
      made->counters = made->errors->on_device + kCounterOffset;
      check(api.cuMemHostAlloc(&made->errors->on_host, sizeof(DataError), CU_MEMHOSTALLOC_PORTABLE),
            "cuMemHostAlloc");
      check(api.cuMemsetD8Async(made->errors->on_device, 0, kBytes, made->handle),
            "cuMemsetD8Async");
    } catch (const Error&) {
      destroy_parts(*made, false);
      throw;
    }
    add_stream(made.get());
    *stream = made.release();
  });
}

int destroy_stream(paddle_stream stream) {
  return guarded([&] {
    const std::unique_ptr<paddle_stream_s> owned(stream);
    use_gpu(stream->device);
    destroy_parts(*stream, true);
  });
}

int synchronize_stream(paddle_stream stream) {
  return guarded([&] {
    reject_while_recording("synchronize_stream");
    reject_on_recording(stream, "synchronize_stream");
    ++counts_of(stream->device).waits;
    use_gpu(stream->device);
    const ErrorMemories copied = queue_error_copy(stream);
    check(driver().cuStreamSynchronize(stream->handle), "cuStreamSynchronize");
    throw_recorded_error(stream, copied);
  });
}

int make_event(int device, paddle_event* event, bool timed) {
  return guarded([&] {
    use_gpu(device);
    auto made = std::make_unique<paddle_event_s>();
    made->device = device;
    made->timed = timed;
    check(driver().cuEventCreate(&made->handle, timed ? 0 : CU_EVENT_DISABLE_TIMING),
          "cuEventCreate");
    *event = made.release();
  });
}

int create_event(int device, paddle_event* event) { return make_event(device, event, false); }
int create_timing_event(int device, paddle_event* event) { return make_event(device, event, true); }

int query_event(paddle_event event, int* reached) {
  return guarded([&] {
    use_gpu(event->device);
    const CUresult result = driver().cuEventQuery(event->handle);
    if (result != CUDA_ERROR_NOT_READY) check(result, "cuEventQuery");
    *reached = result == CUDA_SUCCESS ? 1 : 0;
  });
}

int elapsed(paddle_event begin, paddle_event end, double* seconds) {
  return guarded([&] {
    if (!begin->timed || !end->timed)
      fail(ErrorCode::kUsage, "cuda: elapsed: an event has no clock");
    use_gpu(begin->device);
    float milliseconds = 0;
    const CUresult result = driver().cuEventElapsedTime(&milliseconds, begin->handle, end->handle);
    if (result == CUDA_ERROR_NOT_READY || result == CUDA_ERROR_INVALID_HANDLE)
      fail(ErrorCode::kUsage, "cuda: elapsed: an event has not been reached");
    check(result, "cuEventElapsedTime");
    *seconds = 1e-3 * static_cast<double>(milliseconds);
  });
}

int destroy_event(paddle_event event) {
  return guarded([&] {
    const std::unique_ptr<paddle_event_s> owned(event);
    use_gpu(event->device);
    check(driver().cuEventDestroy(event->handle), "cuEventDestroy");
  });
}

int record_event(paddle_event event, paddle_stream stream) {
  return guarded([&] {
    reject_on_recording(stream, "record_event");
    use_gpu(stream->device);
    check(driver().cuEventRecord(event->handle, stream->handle), "cuEventRecord");
  });
}

int wait_event(paddle_stream stream, paddle_event event) {
  return guarded([&] {
    reject_on_recording(stream, "wait_event");
    use_gpu(stream->device);
    check(driver().cuStreamWaitEvent(stream->handle, event->handle, 0), "cuStreamWaitEvent");
  });
}

int synchronize_event(paddle_event event) {
  return guarded([&] {
    reject_while_recording("synchronize_event");
    use_gpu(event->device);
    check(driver().cuEventSynchronize(event->handle), "cuEventSynchronize");
  });
}

void count_copy(paddle_stream stream, int kind, size_t bytes) {
  if (stream->is_recording)
    stream->recorded.add(kind, bytes);
  else
    counts_of(stream->device).add_copy(kind, bytes);
}

int copy(paddle_stream stream, void* to, const void* from, size_t bytes, int kind) {
  return guarded([&] {
    if (bytes == 0) return;
    use_gpu(stream->device);
    const Driver& api = driver();
    switch (kind) {
      case PADDLE_COPY_TO_DEVICE:
        check(api.cuMemcpyHtoDAsync(address_of(to), from, bytes, stream->handle),
              "cuMemcpyHtoDAsync");
        break;
      case PADDLE_COPY_TO_HOST:
        check(api.cuMemcpyDtoHAsync(to, address_of(from), bytes, stream->handle),
              "cuMemcpyDtoHAsync");
        break;
      case PADDLE_COPY_ON_DEVICE:
        check(api.cuMemcpyDtoDAsync(address_of(to), address_of(from), bytes, stream->handle),
              "cuMemcpyDtoDAsync");
        break;
      default:
        fail(ErrorCode::kUsage, "cuda: copy: unknown kind ", kind);
    }
    count_copy(stream, kind, bytes);
  });
}

int can_access_peer(int device, int peer, int* can_access) {
  return guarded([&] {
    *can_access = 1;
    if (device == peer) return;
    check(driver().cuDeviceCanAccessPeer(can_access, device_handle(device), device_handle(peer)),
          "cuDeviceCanAccessPeer");
  });
}

/// Lets copies from one GPU to the other go directly, once.
void enable_peer(int device, int peer) {
  static auto& mutex = *new std::mutex;
  static auto& enabled = *new std::map<std::pair<int, int>, bool>;
  const std::lock_guard lock(mutex);
  bool& is_enabled = enabled[{device, peer}];
  if (is_enabled || device == peer) return;
  int can_access = 0;
  check(driver().cuDeviceCanAccessPeer(&can_access, device_handle(device), device_handle(peer)),
        "cuDeviceCanAccessPeer");
  if (can_access) {
    use_gpu(device);
    const CUresult result = driver().cuCtxEnablePeerAccess(context_handle(peer), 0);
    if (result != CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED) check(result, "cuCtxEnablePeerAccess");
  }
  is_enabled = true;
}

int copy_peer(paddle_stream stream, void* to, int to_device, const void* from, int from_device,
              size_t bytes) {
  return guarded([&] {
    if (stream->device != to_device && stream->device != from_device)
      fail(ErrorCode::kUsage, "cuda: copy_peer: the stream is of neither device");
    if (bytes == 0) return;
    enable_peer(to_device, from_device);
    enable_peer(from_device, to_device);
    use_gpu(stream->device);
    check(driver().cuMemcpyPeerAsync(address_of(to), context_handle(to_device), address_of(from),
                                     context_handle(from_device), bytes, stream->handle),
          "cuMemcpyPeerAsync");
    count_copy(stream, PADDLE_COPY_ON_DEVICE, bytes);
  });
}

int fill(paddle_stream stream, void* to, int byte, size_t bytes) {
  return guarded([&] {
    if (bytes == 0) return;
    use_gpu(stream->device);
    check(driver().cuMemsetD8Async(address_of(to), static_cast<unsigned char>(byte), bytes,
                                   stream->handle),
          "cuMemsetD8Async");
  });
}

// --- graphs ---

int begin_capture(paddle_stream stream) {
  return guarded([&] { begin_recording(stream); });
}

int end_capture(paddle_stream stream, paddle_graph* graph) {
  return guarded([&] {
    *graph = nullptr;
    *graph = end_recording(stream);
  });
}

int launch_graph(paddle_graph graph, paddle_stream stream) {
  return guarded([&] { launch(graph, stream); });
}

int destroy_graph(paddle_graph graph) {
  return guarded([&] { destroy(graph); });
}

// --- facts ---

int properties(int device, paddle_device_properties* out) {
  return guarded([&] {
    const Gpu& here = gpu(device);
    paddle_device_properties all{};
    all.name = here.name.c_str();
    all.architecture = here.architecture_text.c_str();
    all.memory = all.largest_allocation = here.memory;
    all.alignment = 256;
    all.compute_units = static_cast<uint32_t>(here.multiprocessors);
    all.dlpack_type = 2;  // kDLCUDA
    fill_in(*out, all);
  });
}

int statistics(int device, paddle_device_statistics* out) {
  return fill_in(*out, counts_of(device).statistics());
}

const char* last_error() { return error_text.c_str(); }
const char* last_error_location() { return error_location.c_str(); }

const char* describe(int device) {
  thread_local std::string text;
  text.clear();
  guarded([&] {
    const Gpu& here = gpu(device);
    const int version = driver_library().version;
    text = str(here.name, ", ", architecture_name(here.capability), ", ", human_bytes(here.memory),
               ", driver of CUDA ", version / 1000, ".", version % 1000 / 10);
  });
  return text.c_str();
}

}  // namespace

const paddle_device_api& device_functions() {
  static constexpr paddle_device_api kApi = {.struct_size = sizeof(paddle_device_api),
                                             .version = PADDLE_DEVICE_API_VERSION,
                                             .name = "cuda",
                                             .device_count = device_count,
                                             .memory_info = memory_info,
                                             .allocate = allocate,
                                             .release = release,
                                             .allocate_host = allocate_host,
                                             .release_host = release_host,
                                             .create_stream = create_stream,
                                             .destroy_stream = destroy_stream,
                                             .synchronize_stream = synchronize_stream,
                                             .create_event = create_event,
                                             .destroy_event = destroy_event,
                                             .record_event = record_event,
                                             .wait_event = wait_event,
                                             .synchronize_event = synchronize_event,
                                             .copy = copy,
                                             .fill = fill,
                                             .last_error = last_error,
                                             .last_error_location = last_error_location,
                                             .open = open_cuda,
                                             .describe = describe,
                                             .properties = properties,
                                             .statistics = statistics,
                                             .can_access_peer = can_access_peer,
                                             .copy_peer = copy_peer,
                                             .allocate_queued = allocate_queued,
                                             .release_queued = release_queued,
                                             .trim_pool = trim_pool,
                                             .pin_host = pin_host,
                                             .unpin_host = unpin_host,
                                             .create_timing_event = create_timing_event,
                                             .query_event = query_event,
                                             .elapsed = elapsed,
                                             .begin_capture = begin_capture,
                                             .end_capture = end_capture,
                                             .launch_graph = launch_graph,
                                             .destroy_graph = destroy_graph};
  return kApi;
}

}  // namespace paddle::cuda
