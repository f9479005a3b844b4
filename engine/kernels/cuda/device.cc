// The table of device functions of CUDA.

#include <algorithm>
#include <cstring>
#include <memory>

#include "kernels/cuda/context.h"
#include "kernels/cuda/cuda.h"
#include "kernels/cuda/errors.h"
#include "kernels/cuda/memory.h"

struct paddle_event_s {
  paddle::cuda::CUevent handle = nullptr;
  int device = 0;
};

namespace paddle::cuda {
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

CUdeviceptr address_of(const void* memory) { return reinterpret_cast<CUdeviceptr>(memory); }

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
  return guarded([&] { *memory = allocate_memory(device, bytes); });
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

int create_stream(int device, paddle_stream* stream) {
  return guarded([&] {
    use_gpu(device);
    const Driver& api = driver();
    auto made = std::make_unique<paddle_stream_s>();
    made->device = device;
    check(api.cuStreamCreate(&made->handle, CU_STREAM_NON_BLOCKING), "cuStreamCreate");
    made->error = address_of(allocate_memory(device, sizeof(DataError)));
    check(api.cuMemHostAlloc(&made->error_on_host, sizeof(DataError), CU_MEMHOSTALLOC_PORTABLE),
          "cuMemHostAlloc");
    check(api.cuMemsetD8Async(made->error, 0, sizeof(DataError), made->handle), "cuMemsetD8Async");
    add_stream(made.get());
    *stream = made.release();
  });
}

int destroy_stream(paddle_stream stream) {
  return guarded([&] {
    const std::unique_ptr<paddle_stream_s> owned(stream);
    use_gpu(stream->device);
    check(driver().cuStreamSynchronize(stream->handle), "cuStreamSynchronize");
    remove_stream(stream);
    release_memory(stream->device, reinterpret_cast<void*>(stream->error));
    check(driver().cuMemFreeHost(stream->error_on_host), "cuMemFreeHost");
    check(driver().cuStreamDestroy(stream->handle), "cuStreamDestroy");
  });
}

int synchronize_stream(paddle_stream stream) {
  return guarded([&] {
    use_gpu(stream->device);
    queue_error_copy(stream);
    check(driver().cuStreamSynchronize(stream->handle), "cuStreamSynchronize");
    throw_recorded_error(stream);
  });
}

int create_event(int device, paddle_event* event) {
  return guarded([&] {
    use_gpu(device);
    auto made = std::make_unique<paddle_event_s>();
    made->device = device;
    check(driver().cuEventCreate(&made->handle, CU_EVENT_DISABLE_TIMING), "cuEventCreate");
    *event = made.release();
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
    use_gpu(stream->device);
    check(driver().cuEventRecord(event->handle, stream->handle), "cuEventRecord");
  });
}

int wait_event(paddle_stream stream, paddle_event event) {
  return guarded([&] {
    use_gpu(stream->device);
    check(driver().cuStreamWaitEvent(stream->handle, event->handle, 0), "cuStreamWaitEvent");
  });
}

int synchronize_event(paddle_event event) {
  return guarded([&] {
    use_gpu(event->device);
    check(driver().cuEventSynchronize(event->handle), "cuEventSynchronize");
  });
}

int copy(paddle_stream stream, void* to, const void* from, size_t bytes, int kind) {
  return guarded([&] {
    if (bytes == 0) return;
    use_gpu(stream->device);
    const Driver& api = driver();
    switch (kind) {
      case PADDLE_COPY_TO_DEVICE:
        return check(api.cuMemcpyHtoDAsync(address_of(to), from, bytes, stream->handle),
                     "cuMemcpyHtoDAsync");
      case PADDLE_COPY_TO_HOST:
        return check(api.cuMemcpyDtoHAsync(to, address_of(from), bytes, stream->handle),
                     "cuMemcpyDtoHAsync");
      default:
        return check(api.cuMemcpyDtoDAsync(address_of(to), address_of(from), bytes, stream->handle),
                     "cuMemcpyDtoDAsync");
    }
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
                                             .describe = describe};
  return kApi;
}

}  // namespace paddle::cuda
