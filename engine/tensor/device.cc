#include "tensor/device.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <charconv>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <mutex>

#include "base/error.h"
#include "base/source_location.h"
#include "tensor/device_functions.h"
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
  paddle_device_api api{};  ///< functions that the registered table lacks are null
  std::array<Streams, kMaxDevices> streams;
};

std::mutex& registration() {
  static std::mutex mutex;
  return mutex;
}

/// Kinds by number; entry 0 is the CPU. Never destroyed, since arrays of static lifetime may be
/// released later.
std::array<Kind*, kMaxKinds>& kinds() {
  static std::array<Kind*, kMaxKinds>& table = []() -> auto& {
    auto& all = *new std::array<Kind*, kMaxKinds>{};
    all[0] = new Kind;
    all[0]->api = cpu_device_functions();
    return all;
  }
  ();
  return table;
}

std::atomic<int>& kind_count() {
  static std::atomic<int> count{1};
  return count;
}

/// Whether a table of this size and content has the functions that each device must have.
bool is_complete(const paddle_device_api& api) {
  return api.struct_size >= offsetof(paddle_device_api, open) && api.name && *api.name &&
         api.device_count && api.memory_info && api.allocate && api.release && api.create_stream &&
         api.destroy_stream && api.synchronize_stream && api.create_event && api.destroy_event &&
         api.record_event && api.wait_event && api.synchronize_event && api.copy && api.fill &&
         api.last_error && api.last_error_location;
}

/// Functions that are there together or not at all.
bool has_half(const paddle_device_api& api) {
  const auto differ = [](auto first, auto... others) {
    return (((first == nullptr) != (others == nullptr)) || ...);
  };
  return differ(api.allocate_host, api.release_host) ||
         differ(api.begin_capture, api.end_capture, api.launch_graph, api.destroy_graph) ||
         differ(api.allocate_queued, api.release_queued) || differ(api.pin_host, api.unpin_host) ||
         differ(api.can_access_peer, api.copy_peer) || differ(api.create_timing_event, api.elapsed);
}

/// The part of a table that its size covers; what follows is null, with the host's memory in the
/// place of missing functions for it.
paddle_device_api copied_table(const paddle_device_api& given) {
  paddle_device_api api{};
  std::memcpy(&api, &given, std::min<size_t>(given.struct_size, sizeof api));
  api.struct_size = sizeof api;
  return api;
}

Streams& streams_of(Device device) {
  const paddle_device_api& api = device_api(device);
  Streams& streams =
      kinds()[static_cast<size_t>(device.kind)]->streams.at(static_cast<size_t>(device.index));
  std::call_once(streams.once, [&] {
    if (!streams.compute)  // another call may have failed after it
      check_device(device, api.create_stream(device.index, &streams.compute));
    check_device(device, api.create_stream(device.index, &streams.copy));
  });
  return streams;
}

}  // namespace

std::string Device::text() const {
  const std::string name = device_api(*this).name;
  return index == 0 ? name : str(name, ":", index);
}

std::string problem_of(const paddle_device_api& table) {
  if (!is_complete(table)) return "the table of a device lacks functions";
  const std::string name = str("device '", table.name, "'");
  const std::string_view word = table.name;
  constexpr std::string_view kLetters = "abcdefghijklmnopqrstuvwxyz0123456789_";
  if (word.size() > 32 || word.find_first_not_of(kLetters) != std::string_view::npos)
    return name + ": expected a name of at most 32 characters of a-z, 0-9 and _";
  if (table.version != PADDLE_DEVICE_API_VERSION)
    return str(name, " is for version ", table.version, " of the device functions, expected ",
               PADDLE_DEVICE_API_VERSION);
  if (has_half(copied_table(table))) return name + " has one function of a group but not all";
  return "";
}

int16_t register_device_kind(const paddle_device_api& given) {
  if (const std::string problem = problem_of(given); !problem.empty())
    fail(ErrorCode::kUsage, problem);
  paddle_device_api api = copied_table(given);
  if (!api.allocate_host) {
    api.allocate_host = cpu_device_functions().allocate_host;
    api.release_host = cpu_device_functions().release_host;
  }
  const std::lock_guard lock(registration());
  const int count = kind_count();
  for (const std::string& name : device_kinds())
    if (name == api.name) fail(ErrorCode::kUsage, "there is already a device '", name, "'");
  if (count == kMaxKinds) fail(ErrorCode::kUsage, "more than ", kMaxKinds, " kinds of devices");
  Kind* const kind = new Kind;
  kind->api = api;
  kinds()[static_cast<size_t>(count)] = kind;
  kind_count() = count + 1;
  return static_cast<int16_t>(count);
}

std::vector<std::string> device_kinds() {
  std::vector<std::string> names;
  for (int i = 0; i < kind_count(); ++i)
    names.emplace_back(kinds()[static_cast<size_t>(i)]->api.name);
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
  const paddle_device_api& api = device_api(device);
  if (api.open) check_device(device, api.open());
  const int count = std::min(api.device_count(), kMaxDevices);
  if (device.index >= count)
    fail(ErrorCode::kUsage, "there is no device '", text, "': ", count, " of kind '",
         text.substr(0, text.find(':')), "' found");
  return device;
}

std::string describe_device(Device device) {
  const paddle_device_api& api = device_api(device);
  return api.describe ? api.describe(device.index) : "";
}

const paddle_device_api& device_api(Device device) {
  ensure(device.kind >= 0 && device.kind < kind_count(), "there is no device of kind ",
         device.kind);
  return kinds()[static_cast<size_t>(device.kind)]->api;
}

paddle_device_properties device_properties(Device device) {
  const paddle_device_api& api = device_api(device);
  paddle_device_properties out{};
  out.struct_size = sizeof out;
  out.name = api.name;
  if (api.properties) check_device(device, api.properties(device.index, &out));
  constexpr uint32_t kLeast = 256;  // of `allocate`
  if (out.alignment == 0) out.alignment = kLeast;
  return out;
}

paddle_device_statistics device_statistics(Device device) {
  const paddle_device_api& api = device_api(device);
  paddle_device_statistics out{};
  out.struct_size = sizeof out;
  if (api.statistics) check_device(device, api.statistics(device.index, &out));
  return out;
}

std::optional<Device> device_of_dlpack(int32_t type, int32_t id) {
  for (int16_t kind = 0; kind < kind_count() && id >= 0; ++kind) {
    const paddle_device_api& api = device_api({kind, 0});
    paddle_device_properties facts{};
    facts.struct_size = sizeof facts;
    // A kind that cannot tell, such as one without its driver, has no memory to be shared.
    if (type == 0 || !api.properties || api.properties(0, &facts) != 0) continue;
    if (facts.dlpack_type == type && id < std::min(api.device_count(), kMaxDevices))
      return Device{kind, static_cast<int16_t>(id)};
  }
  return std::nullopt;
}

bool has_graphs(Device device) { return device_api(device).begin_capture != nullptr; }

size_t available_memory(Device device) {
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
  if (device.is_cpu()) return;  // on the way of each step
  check_device(device, device_api(device).synchronize_stream(compute_stream(device)));
}

}  // namespace paddle
