#pragma once
// Kernels over rows: softmax, cross entropy, normalization, their gradients, and sums of squares.

#include "ops/core/kernel.h"

namespace paddle::cuda {

std::unique_ptr<Kernel> prepare_softmax(const KernelRequest& request);
std::unique_ptr<Kernel> prepare_softmax_cross_entropy(const KernelRequest& request);
std::unique_ptr<Kernel> prepare_softmax_cross_entropy_grad(const KernelRequest& request);
std::unique_ptr<Kernel> prepare_layer_norm(const KernelRequest& request);
std::unique_ptr<Kernel> prepare_rms_norm(const KernelRequest& request);
std::unique_ptr<Kernel> prepare_layer_norm_grad(const KernelRequest& request);
std::unique_ptr<Kernel> prepare_sum_of_squares(const KernelRequest& request);
std::unique_ptr<Kernel> prepare_all_finite(const KernelRequest& request);

}  // namespace paddle::cuda
