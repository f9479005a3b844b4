#pragma once
// A device as its checks use it: the functions of its table, whose errors are those of the check,
// and streams, events and memory that are released with their objects.

#include <cstring>
#include <functional>
#include <string>
#include <vector>

#include "base/error.h"
#include "conformance/calls.h"
#include "paddle/plugin/device.h"
#include "tensor/device.h"

namespace paddle::conformance {

using Bytes = std::vector<uint8_t>;

/// Throws an error that names the function unless the status is 0.
void must(const paddle_device_api& api, int status, const char* function);

class DeviceStream {
 public:
  DeviceStream(const paddle_device_api& api, int device) : api_(api) {
    must(api_, api_.create_stream(device, &stream_), "create_stream");
  }
  ~DeviceStream() { api_.destroy_stream(stream_); }
  DeviceStream(const DeviceStream&) = delete;
  DeviceStream& operator=(const DeviceStream&) = delete;
  paddle_stream get() const { return stream_; }

  void copy(void* to, const void* from, size_t bytes, paddle_copy_kind kind) const {
    must(api_, api_.copy(stream_, to, from, bytes, kind), "copy");
  }
  void to_device(void* to, const void* from, size_t bytes) const {
    copy(to, from, bytes, PADDLE_COPY_TO_DEVICE);
  }
  void to_host(void* to, const void* from, size_t bytes) const {
    copy(to, from, bytes, PADDLE_COPY_TO_HOST);
  }
  void on_device(void* to, const void* from, size_t bytes) const {
    copy(to, from, bytes, PADDLE_COPY_ON_DEVICE);
  }
  void fill(void* to, int byte, size_t bytes) const {
    must(api_, api_.fill(stream_, to, byte, bytes), "fill");
  }
  void synchronize() const { must(api_, api_.synchronize_stream(stream_), "synchronize_stream"); }

 private:
  const paddle_device_api& api_;
  paddle_stream stream_ = nullptr;
};

class DeviceEvent {
 public:
  DeviceEvent(const paddle_device_api& api, int device) : api_(api) {
    must(api_, api_.create_event(device, &event_), "create_event");
  }
  ~DeviceEvent() { api_.destroy_event(event_); }
  DeviceEvent(const DeviceEvent&) = delete;
  DeviceEvent& operator=(const DeviceEvent&) = delete;
  void record(const DeviceStream& stream) const {
    must(api_, api_.record_event(event_, stream.get()), "record_event");
  }
  void wait(const DeviceStream& stream) const {
    must(api_, api_.wait_event(stream.get(), event_), "wait_event");
  }
  void synchronize() const { must(api_, api_.synchronize_event(event_), "synchronize_event"); }

 private:
  const paddle_device_api& api_;
  paddle_event event_ = nullptr;
};

class DeviceMemory {
 public:
  DeviceMemory(const paddle_device_api& api, int device, size_t bytes)
      : api_(api), device_(device), bytes_(bytes) {
    must(api_, api_.allocate(device, bytes, &memory_), "allocate");
  }
  ~DeviceMemory() { release(); }
  DeviceMemory(DeviceMemory&& other) noexcept
      : api_(other.api_), device_(other.device_), bytes_(other.bytes_), memory_(other.memory_) {
    other.memory_ = nullptr;
  }
  DeviceMemory(const DeviceMemory&) = delete;
  DeviceMemory& operator=(const DeviceMemory&) = delete;
  /// Before the end of the object.
  void release() {
    if (memory_) api_.release(device_, memory_);
    memory_ = nullptr;
  }
  uint8_t* at(size_t offset = 0) const { return static_cast<uint8_t*>(memory_) + offset; }
  size_t bytes() const { return bytes_; }

 private:
  const paddle_device_api& api_;
  int device_;
  size_t bytes_;
  void* memory_ = nullptr;
};

/// Work that takes some time: without it what is queued would be done before it is looked at.
class SlowWork {
 public:
  SlowWork(const paddle_device_api& api, int device) : memory_(api, device, kBytes) {}
  void queue(const DeviceStream& stream) const {
    for (int i = 0; i < kFills; ++i) stream.fill(memory_.at(), i, kBytes);
  }

 private:
  static constexpr size_t kBytes = size_t{8} << 20;
  static constexpr int kFills = 24;
  DeviceMemory memory_;
};

/// Bytes that differ from place to place.
Bytes pattern(size_t bytes, uint64_t seed);
/// Copies memory to the host and waits.
Bytes read_back(const DeviceStream& stream, const void* from, size_t bytes);
/// "" or the first byte that differs.
std::string difference(const Bytes& found, const Bytes& expected);

/// How long `returns_in_time` waits: longer without `quick`.
void set_time_limit(const Extent& extent);
/// Runs `f` on a thread of its own and returns its result, or a message if it does not end within
/// the time limit; the thread then continues.
std::string returns_in_time(const char* what, const std::function<std::string()>& f);

}  // namespace paddle::conformance
