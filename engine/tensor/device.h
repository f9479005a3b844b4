#pragma once
// Devices: where the memory of an array is and who may read it. The host CPU is device 0; other
// kinds register a table of functions. More about them is in tensor/device_functions.h.

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

/// The table of functions of a kind of device, paddle/plugin/device.h, and what it hands out.
struct paddle_device_api;
typedef struct paddle_stream_s* paddle_stream;
typedef struct paddle_event_s* paddle_event;

namespace paddle {

/// A kind of device and the number of one of them.
struct Device {
  int16_t kind = 0;  ///< 0: the host CPU; others by order of registration
  int16_t index = 0;

  static Device cpu() { return {}; }
  bool is_cpu() const { return kind == 0; }
  bool operator==(const Device&) const = default;
  std::string text() const;  ///< "cpu", "mirror", "mirror:1"
};

/// Adds a kind of device with a copy of the table; returns its number. kUsage if the table is
/// incomplete, of another version, or has the name of a kind that is there already.
int16_t register_device_kind(const paddle_device_api& api);
/// "cpu" and the names of the registered kinds.
std::vector<std::string> device_kinds();
/// The device of this name, "KIND" or "KIND:INDEX". kUsage if there is none, kDevice if the kind
/// lacks what its devices need, such as a driver.
Device parse_device(std::string_view text);
/// A line about the device, such as its name and the version of its driver; "" if unknown.
std::string describe_device(Device device);
/// The functions of a kind of device. Those after the given size are null.
const paddle_device_api& device_api(Device device);
/// Bytes that an allocation on the device can take at most: free ones there; of the CPU the limit
/// of this process.
size_t available_memory(Device device);

/// Throws what a function of the table reported; 0 is success.
void check_device(Device device, int status);

/// The stream that kernels run on.
paddle_stream compute_stream(Device device);
/// The stream for copies of inputs, which run overlapped with kernels.
paddle_stream copy_stream(Device device);
/// Waits for all kernels of the device. Throws the first error of a kernel since the last call. The
/// CPU needs no waiting.
void synchronize(Device device);

}  // namespace paddle
