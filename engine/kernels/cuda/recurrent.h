#pragma once
// The steps of recurrent layers, in float32 and float64.

#include "ops/core/kernel.h"

namespace paddle::cuda {

std::unique_ptr<Kernel> prepare_recurrent_scan(const KernelRequest& request);
std::unique_ptr<Kernel> prepare_recurrent_scan_grad(const KernelRequest& request);

}  // namespace paddle::cuda
