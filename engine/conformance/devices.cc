#include "conformance/devices.h"

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <thread>

#include "conformance/device_objects.h"
#include "inspect/compare.h"
#include "runtime/execute.h"
#include "tensor/random.h"

namespace paddle::conformance {

void must(const paddle_device_api& api, int status, const char* function) {
  if (status == 0) return;
  const char* const text = api.last_error();
  fail(ErrorCode::kInternal, function, " gives the status ", status, ": ", text ? text : "");
}

Bytes pattern(size_t bytes, uint64_t seed) {
  Bytes out(bytes);
  for (size_t i = 0; i < bytes; ++i)
    out[i] = static_cast<uint8_t>((i * 131 + (i >> 8) * 7 + seed * 59) % 251);
  return out;
}

Bytes read_back(const DeviceStream& stream, const void* from, size_t bytes) {
  Bytes out(bytes, 0xEE);
  stream.to_host(out.data(), from, bytes);
  stream.synchronize();
  return out;
}

std::string difference(const Bytes& found, const Bytes& expected) {
  for (size_t i = 0; i < expected.size(); ++i)
    if (found[i] != expected[i]) {
      const std::string wanted = str(int{expected[i]}), is = str(int{found[i]});
      std::string bad = str("byte ", i, " of ", expected.size(), " is ", is, ", expected ", wanted);
      inspect::note_mismatch({bad, is, wanted});
      return bad;
    }
  return "";
}

namespace {
/// Seconds after which a device counts as hanging, on a machine that other programs use, too.
std::atomic<int> time_limit = 20;
}  // namespace

void set_time_limit(const Extent& extent) { time_limit = extent.quick ? 20 : 80; }

std::string returns_in_time(const char* what, const std::function<std::string()>& f) {
  const std::chrono::seconds limit(time_limit.load());
  struct Outcome {
    std::mutex mutex;
    std::condition_variable changed;
    bool done = false;
    std::string text;
  };
  // Kept by the thread, too, which may outlive this call.
  const auto outcome = std::make_shared<Outcome>();
  std::thread([outcome, f] {
    std::string text;
    try {
      text = f();
    } catch (const std::exception& e) {
      text = e.what();
    }
    const std::lock_guard lock(outcome->mutex);
    outcome->text = std::move(text);
    outcome->done = true;
    outcome->changed.notify_all();
  }).detach();
  std::unique_lock lock(outcome->mutex);
  if (!outcome->changed.wait_for(lock, limit, [&] { return outcome->done; }))
    return str(what, " does not return within ", limit.count(), " seconds");
  return outcome->text;
}

const std::vector<DeviceCheck>& device_checks() {
  static const std::vector<DeviceCheck> all = [] {
    std::vector<DeviceCheck> out;
    const auto add = [&](const char* group, std::initializer_list<const char*> names) {
      for (const char* name : names) out.push_back({group, name});
    };
    add("memory", {"facts", "sizes", "too_much", "release", "leak", "accounting", "devices", "host",
                   "pool", "statistics"});
    add("streams", {"order", "copies", "fill", "host_memory", "synchronize", "events",
                    "event_again", "event_unrecorded", "event_of_host", "event_of_device",
                    "crosswise", "threads", "peers", "clock", "graphs", "objects"});
    add("schedules", {"random"});
    add("errors",
        {"arguments", "threads", "kernel", "after_kernel", "once", "full_memory", "nonfinite"});
    add("plans", {"modules", "gradients", "unusual", "streams", "at_once", "steady"});
    add("repeat", {"repeated"});
    return out;
  }();
  return all;
}

std::string check_device(const std::string& device, const DeviceCheck& check,
                         const Extent& extent) {
  runtime::register_backends();
  set_time_limit(extent);
  if (check.group == "memory") return check_device_memory(device, check.name, extent);
  if (check.group == "streams" || check.group == "schedules")
    return check_device_streams(device, check.name, extent);
  if (check.name == "nonfinite") return check_device_nonfinite(device, extent);
  return check_device_plans(device, check.name, extent);
}

}  // namespace paddle::conformance
