#pragma once
// The group `speed`, which informs and fails only where nothing can be measured: costs of calls and
// copies, and times of operations next to those of the CPU.

#include <string>
#include <vector>

#include "conformance/calls.h"
#include "ops/core/op.h"

namespace paddle::conformance {

/// "calls", "copies", "operations".
const std::vector<std::string>& speed_checks();
/// A line that begins with kNote has the times; others say what is wrong.
std::string measure_device(const std::string& device, const std::string& check,
                           const Extent& extent);
/// The time of an operation with its kernels and with its body, on its first sample with larger
/// sizes.
std::string measure_operation(const Op& op, const Extent& extent);

}  // namespace paddle::conformance
