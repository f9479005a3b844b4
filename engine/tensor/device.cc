#include "tensor/device.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <charconv>
#include <cstddef>
#include <mutex>

#include "base/error.h"
#include "base/limits.h"
#include "base/source_location.h"
#include "tensor/named_device.h"

namespace paddle {
namespace {

constexpr int kMaxKinds = 16;
constexpr int kMaxDevices = 64;

struct Streams {
  std::once_flag once;
  paddle_stream compute = nullptr, copy = nullptr;
};

struct Kind {
  const paddle_device_api* api = nullptr;
  std::array<Streams, kMaxDevices> streams;
};

std::mutex& registration() {
  static std::mutex mutex;
  return mutex;
}

/// Kinds by number; entry 0, the CPU, has no functions. Never destroyed, since arrays of static
/// lifetime may be released later.
std::array<Kind*, kMaxKinds>& kinds() {
  static std::array<Kind*, kMaxKinds> table{};
  return table;
}

std::atomic<int>& kind_count() {
  static std::atomic<int> count{1};
  return count;
}

bool is_complete(const paddle_device_api& api) {
  return api.struct_size >= offsetof(paddle_device_api, open) && api.name && *api.name &&
         api.device_count && api.memory_info && api.allocate && api.release && api.allocate_host &&
         api.release_host && api.create_stream && api.destroy_stream && api.synchronize_stream &&
         api.create_event && api.destroy_event && api.record_event && api.wait_event &&
         api.synchronize_event && api.copy && api.fill && api.last_error && api.last_error_location;
}

bool has_open(const paddle_device_api& api) {
  return api.struct_size > offsetof(paddle_device_api, open) && api.open;
}

bool has_describe(const paddle_device_api& api) {
  return api.struct_size > offsetof(paddle_device_api, describe) && api.describe;
}

Streams& streams_of(Device device) {
  const paddle_device_api& api = device_api(device);
  Streams& streams =
      kinds()[static_cast<size_t>(device.kind)]->streams.at(static_cast<size_t>(device.index));
  std::call_once(streams.once, [&] {
    check_device(device, api.create_stream(device.index, &streams.compute));
    check_device(device, api.create_stream(device.index, &streams.copy));
  });
  return streams;
}

}  // namespace

std::string Device::text() const {
  const std::string name = is_cpu() ? "cpu" : device_api(*this).name;
  return index == 0 ? name : str(name, ":", index);
}

int16_t register_device_kind(const paddle_device_api& api) {
  if (!is_complete(api)) fail(ErrorCode::kUsage, "the table of a device lacks functions");
  if (api.version != PADDLE_DEVICE_API_VERSION)
    fail(ErrorCode::kUsage, "device '", api.name, "' is for version ", api.version,
         " of the device functions, expected ", PADDLE_DEVICE_API_VERSION);
  const std::lock_guard lock(registration());
  const int count = kind_count();
  for (const std::string& name : device_kinds())
    if (name == api.name) fail(ErrorCode::kUsage, "there is already a device '", name, "'");
  if (count == kMaxKinds) fail(ErrorCode::kUsage, "more than ", kMaxKinds, " kinds of devices");
  Kind* const kind = new Kind;
  kind->api = &api;
  kinds()[static_cast<size_t>(count)] = kind;
  kind_count() = count + 1;
  return static_cast<int16_t>(count);
}

std::vector<std::string> device_kinds() {
  std::vector<std::string> names = {"cpu"};
  for (int i = 1; i < kind_count(); ++i)
    names.emplace_back(kinds()[static_cast<size_t>(i)]->api->name);
  return names;
}

Device named_device(std::string_view text) {
  const std::string_view name = text.substr(0, text.find(':'));
  const std::vector<std::string> names = device_kinds();
  const auto found = std::ranges::find(names, name);
  if (found == names.end())
    fail(ErrorCode::kUsage, "unknown device '", text, "', expected one of ", join(names, ", "));
  Device device{static_cast<int16_t>(found - names.begin()), 0};
  if (name.size() < text.size()) {
    const char* const end = text.data() + text.size();
    const auto [stop, error] = std::from_chars(text.data() + name.size() + 1, end, device.index);
    if (error != std::errc() || stop != end || device.index < 0)
      fail(ErrorCode::kUsage, "device '", text, "': expected a number after ':'");
  }
  return device;
}

Device parse_device(std::string_view text) {
  const Device device = named_device(text);
  int count = 1;
  if (!device.is_cpu()) {
    const paddle_device_api& api = device_api(device);
    if (has_open(api)) check_device(device, api.open());
    count = std::min(api.device_count(), kMaxDevices);
  }
  if (device.index >= count)
    fail(ErrorCode::kUsage, "there is no device '", text, "': ", count, " of kind '",
         text.substr(0, text.find(':')), "' found");
  return device;
}

std::string describe_device(Device device) {
  if (device.is_cpu()) return {};
  const paddle_device_api& api = device_api(device);
  return has_describe(api) ? api.describe(device.index) : "";
}

const paddle_device_api& device_api(Device device) {
  ensure(device.kind > 0 && device.kind < kind_count(), "there is no device of kind ", device.kind);
  return *kinds()[static_cast<size_t>(device.kind)]->api;
}

size_t available_memory(Device device) {
  if (device.is_cpu()) return static_cast<size_t>(limits().memory);
  size_t available = 0, total = 0;
  check_device(device, device_api(device).memory_info(device.index, &available, &total));
  return available;
}

void check_device(Device device, int status) {
  if (status == 0) return;
  const paddle_device_api& api = device_api(device);
  throw Error(static_cast<ErrorCode>(status), api.last_error(),
              parse_source_location(api.last_error_location()));
}

paddle_stream compute_stream(Device device) { return streams_of(device).compute; }
paddle_stream copy_stream(Device device) { return streams_of(device).copy; }

void synchronize(Device device) {
  if (device.is_cpu()) return;
  check_device(device, device_api(device).synchronize_stream(compute_stream(device)));
}

}  // namespace paddle
