#pragma once
// Addresses of mirror memory. Each is the real address with one more bit, which makes it invalid
// for the CPU: dereferencing it faults.

#include <cstdint>
#include <functional>
#include <string>

#include "base/error.h"
#include "paddle/plugin/device.h"

namespace paddle::mirror {

/// Above the addresses that Linux hands out on x86-64 and AArch64 (47 and 48 bits without a hint),
/// and below the top byte, which AArch64 ignores.
inline constexpr uintptr_t kDeviceBit = uintptr_t{1} << 53;

inline void* to_device_address(void* real) {
  return reinterpret_cast<void*>(reinterpret_cast<uintptr_t>(real) | kDeviceBit);
}

/// The real address of device memory; null stays null.
inline void* to_host_address(void* address) {
  const auto bits = reinterpret_cast<uintptr_t>(address);
  if (!address) return nullptr;
  ensure((bits & kDeviceBit) != 0, "mirror: a kernel or copy has an address of the host");
  return reinterpret_cast<void*>(bits & ~kDeviceBit);
}

const paddle_device_api& device_functions();
/// Queues work on a stream of the device; `location` is that of the operation, for errors.
void launch(paddle_stream stream, std::function<void()> work, std::string location);
void launch_and_wait(paddle_stream stream, std::function<void()> work, std::string location);

}  // namespace paddle::mirror
