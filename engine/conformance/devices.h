#pragma once
// The checks of a kind of device: its memory, streams, events and copies by the functions of its
// table, and operations, errors and whole modules that it computes.

#include <string>
#include <vector>

#include "conformance/calls.h"
#include "inspect/both_modes.h"
#include "ops/core/op.h"

namespace paddle::conformance {

struct DeviceCheck {
  std::string group;  ///< "memory", "streams", "schedules", "errors", "plans", "repeat"
  std::string name;   ///< "sizes"
};
const std::vector<DeviceCheck>& device_checks();
/// "" or one line: what is wrong; one that begins with kSkip says why there was nothing to check.
std::string check_device(const std::string& device, const DeviceCheck& check, const Extent& extent);

/// The checks of one group, which are in files of their own.
std::string check_device_memory(const std::string& device, const std::string& check,
                                const Extent& extent);
std::string check_device_streams(const std::string& device, const std::string& check,
                                 const Extent& extent);
std::string check_device_plans(const std::string& device, const std::string& check,
                               const Extent& extent);
/// NaN and infinity, of the group "errors".
std::string check_device_nonfinite(const std::string& device, const Extent& extent);

}  // namespace paddle::conformance
