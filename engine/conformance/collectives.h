#pragma once
// The checks of collective operations on a device: ranks are threads of this process, and what each
// has on the device is compared with the same on the CPU bit by bit.

#include <string>
#include <vector>

#include "conformance/calls.h"

namespace paddle::conformance {

/// "ranks/2", "plan/3", …
std::vector<std::string> collective_checks(const Extent& extent);
/// "" or what is wrong. `device`: a kind of device that is registered.
std::string check_collectives_on(const std::string& device, const std::string& check,
                                 const Extent& extent);

}  // namespace paddle::conformance
