#pragma once
// Convolutions and attention by cuDNN, where it is installed. Its backend is asked before our own
// kernels, which compute what it declines: float64, attention with masks or in float32, and
// operands of other strides.

#include <memory>

#include "ops/core/fused.h"

namespace paddle::cuda {

/// The backend `cudnn`.
std::unique_ptr<Kernel> prepare_dnn(const KernelRequest& request);
/// The same with casts and the concat of the results fused in: attention's gradients of q, k and v
/// are stored straight in the gradient of a packed QKV projection.
std::unique_ptr<Kernel> prepare_dnn_group(const FusedRequest& request);
bool has_dnn_kernel(const Op& op, const TargetInfo& target, std::span<const DType> operands);

std::unique_ptr<Kernel> prepare_dnn_convolution(const KernelRequest& request);
std::unique_ptr<Kernel> prepare_dnn_attention(const KernelRequest& request);
std::unique_ptr<Kernel> prepare_dnn_attention_grad(const KernelRequest& request);

}  // namespace paddle::cuda
