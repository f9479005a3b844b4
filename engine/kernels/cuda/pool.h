#pragma once
// Pooling over planes, and its gradients.

#include "ops/core/kernel.h"

namespace paddle::cuda {

/// Null where a tensor has 2^31 elements or more.
std::unique_ptr<Kernel> prepare_max_pool(const KernelRequest& request);
std::unique_ptr<Kernel> prepare_max_pool_grad(const KernelRequest& request);
std::unique_ptr<Kernel> prepare_max_pool_take(const KernelRequest& request);
std::unique_ptr<Kernel> prepare_average_pool(const KernelRequest& request);
std::unique_ptr<Kernel> prepare_average_pool_grad(const KernelRequest& request);

}  // namespace paddle::cuda
