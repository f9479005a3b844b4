#pragma once
// Facts about devices, counts of their work, graphs and DLPack's names of their memory, and the
// table of functions itself, for code that calls it.

#include <algorithm>
#include <cstring>
#include <optional>

#include "paddle/plugin/device.h"
#include "tensor/device.h"

namespace paddle {

/// Facts about a device. Unknown ones are zero and null, except for the alignment of its memory and
/// its name.
paddle_device_properties device_properties(Device device);
/// Counts of the device's work since the process began. All zero if it does not count.
paddle_device_statistics device_statistics(Device device);
/// Whether work can be recorded and queued again.
bool has_graphs(Device device);

/// The reason for which a table cannot be registered, besides a name that is taken; "" if none.
std::string problem_of(const paddle_device_api& table);

/// For devices: gives a caller the part of a struct that its `struct_size` covers. Returns success.
template <class Struct>
int fill_in(Struct& out, Struct all) {
  all.struct_size = out.struct_size;
  std::memcpy(&out, &all, std::min<size_t>(out.struct_size, sizeof all));
  return PADDLE_OK;
}

/// The device whose memory DLPack calls by this type and number; nullopt if there is none.
std::optional<Device> device_of_dlpack(int32_t type, int32_t id);

/// The table of the CPU, kind 0. Its streams do everything at once.
const paddle_device_api& cpu_device_functions();

}  // namespace paddle
