#pragma once
// Numbers on the device that become sizes of tensors.

#include <memory>

#include "ops/core/kernel.h"

namespace paddle::cuda {

/// run_time_sizes; waits for the numbers.
std::unique_ptr<Kernel> prepare_run_time_sizes(const KernelRequest& request);

}  // namespace paddle::cuda
