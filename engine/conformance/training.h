#pragma once
// The group `training`: small networks and single operations are trained for some steps, in both
// modes, and compared with the CPU.

#include <string>
#include <vector>

#include "conformance/calls.h"
#include "inspect/both_modes.h"
#include "ops/core/op.h"

namespace paddle::conformance {

/// The networks: "mlp", "convolution", …
std::vector<std::string> training_nets();

/// Trains a network on a device for 20 steps, 8 of quick checks. The losses are those of the CPU
/// within the tolerance of the dtype, and a device that declares so (PADDLE_DEVICE_REPEATABLE)
/// gives the same bits again.
/// "" or what is wrong; a line that begins with kNote says whether the bits were the same.
std::string check_training(const std::string& device, const std::string& net, inspect::Mode mode,
                           const Extent& extent);

/// Reduces the squares of an operation's results for 20 steps, by its kernels and gradients and by
/// its body.
std::string check_training_of(const Op& op, inspect::Mode mode);

}  // namespace paddle::conformance
