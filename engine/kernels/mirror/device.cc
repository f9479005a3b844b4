// The device functions of mirror: memory, streams, events and copies.

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <map>

#include "base/limits.h"
#include "kernels/mirror/address.h"
#include "kernels/mirror/mirror.h"
#include "kernels/mirror/stream.h"
#include "tensor/device.h"

struct paddle_stream_s {
  std::shared_ptr<paddle::mirror::Stream> stream;
};

struct paddle_event_s {
  paddle::mirror::Event event;
};

namespace paddle::mirror {
namespace {

constexpr int kDevices = 2;  // two, so that programs that mix them up fail
constexpr size_t kAlignment = 256;

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

/// Sizes of allocations by address. It also holds the addresses for leak detection, since callers
/// have only tagged ones.
struct Allocations {
  std::mutex mutex;
  std::map<void*, size_t> sizes;
  size_t total = 0;
};

Allocations& allocations() {
  static auto* const table = new Allocations;
  return *table;
}

size_t rounded(size_t bytes) {
  return (std::max<size_t>(bytes, 1) + kAlignment - 1) / kAlignment * kAlignment;
}

int device_count() { return kDevices; }

int memory_info(int, size_t* available, size_t* total) {
  return guarded([&] {
    Allocations& all = allocations();
    const std::lock_guard lock(all.mutex);
    *total = static_cast<size_t>(limits().memory);
    *available = *total - std::min(*total, all.total);
  });
}

int allocate(int, size_t bytes, void** memory) {
  return guarded([&] {
    void* const real =
        bytes <= SIZE_MAX - kAlignment ? std::aligned_alloc(kAlignment, rounded(bytes)) : nullptr;
    if (!real)
      fail(ErrorCode::kDevice, "mirror: out of memory: cannot allocate ", human_bytes(bytes));
    Allocations& all = allocations();
    const std::lock_guard lock(all.mutex);
    all.sizes[real] = bytes;
    all.total += bytes;
    *memory = to_device_address(real);
  });
}

int release(int, void* memory) {
  return guarded([&] {
    Stream::after_all([real = to_host_address(memory)] {
      Allocations& all = allocations();
      const std::lock_guard lock(all.mutex);
      const auto it = all.sizes.find(real);
      all.total -= it->second;
      all.sizes.erase(it);
      std::free(real);
    });
  });
}

int allocate_host(size_t bytes, void** memory) {
  *memory =
      bytes <= SIZE_MAX - kAlignment ? std::aligned_alloc(kAlignment, rounded(bytes)) : nullptr;
  return guarded([&] {
    if (!*memory) fail(ErrorCode::kDevice, "out of memory: cannot allocate ", human_bytes(bytes));
  });
}

int release_host(void* memory) {
  std::free(memory);
  return 0;
}

int create_stream(int, paddle_stream* stream) {
  return guarded([&] { *stream = new paddle_stream_s{make_stream()}; });
}

int destroy_stream(paddle_stream stream) {
  delete stream;
  return 0;
}

int synchronize_stream(paddle_stream stream) {
  return guarded([&] { stream->stream->synchronize(); });
}

int create_event(int, paddle_event* event) {
  return guarded([&] { *event = new paddle_event_s; });
}

int destroy_event(paddle_event event) {
  delete event;
  return 0;
}

int record_event(paddle_event event, paddle_stream stream) {
  return guarded([&] { stream->stream->record(event->event); });
}

int wait_event(paddle_stream stream, paddle_event event) {
  return guarded([&] { stream->stream->wait(event->event); });
}

int synchronize_event(paddle_event event) {
  return guarded([&] { Stream::synchronize(event->event); });
}

int copy(paddle_stream stream, void* to, const void* from, size_t bytes, int kind) {
  return guarded([&] {
    void* const target = kind == PADDLE_COPY_TO_HOST ? to : to_host_address(to);
    const void* const source =
        kind == PADDLE_COPY_TO_DEVICE ? from : to_host_address(const_cast<void*>(from));
    stream->stream->push([=] { std::memmove(target, source, bytes); });
  });
}

int fill(paddle_stream stream, void* to, int byte, size_t bytes) {
  return guarded([&] {
    stream->stream->push([=, target = to_host_address(to)] { std::memset(target, byte, bytes); });
  });
}

const char* last_error() { return error_text.c_str(); }
const char* last_error_location() { return error_location.c_str(); }

}  // namespace

const paddle_device_api& device_functions() {
  static constexpr paddle_device_api kApi = {.struct_size = sizeof(paddle_device_api),
                                             .version = PADDLE_DEVICE_API_VERSION,
                                             .name = "mirror",
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
                                             .open = nullptr,
                                             .describe = nullptr};
  return kApi;
}

uint64_t queued_work() { return Stream::queued(); }

void launch(paddle_stream stream, std::function<void()> work, std::string location) {
  stream->stream->push(std::move(work), std::move(location));
}

void launch_and_wait(paddle_stream stream, std::function<void()> work, std::string location) {
  launch(stream, std::move(work), std::move(location));
  stream->stream->synchronize();
}

}  // namespace paddle::mirror
