#pragma once
// Convolutions and their gradients by our own kernels.

#include "ops/core/kernel.h"

namespace paddle::cuda {

/// conv2d and conv3d; the other forms consist of them. Null where a size needs more than 31 bits.
std::unique_ptr<Kernel> prepare_conv(const KernelRequest& request);
std::unique_ptr<Kernel> prepare_conv_input_grad(const KernelRequest& request);
std::unique_ptr<Kernel> prepare_conv_weight_grad(const KernelRequest& request);

}  // namespace paddle::cuda
