#pragma once
// The device `cuda`: NVIDIA GPUs through the driver, with kernels that are compiled at run time for
// the GPU at hand. Nothing of CUDA is linked or opened before a program asks for the device.

#include "ops/core/fused.h"
#include "ops/core/kernel.h"

namespace paddle::cuda {

/// Registers the device and its backend, once.
void register_device();

const paddle_device_api& device_functions();

}  // namespace paddle::cuda
