#pragma once
// Batch normalization and its gradient, complete and as statistics only.

#include "ops/core/kernel.h"

namespace paddle::cuda {

/// batch_norm and batch_norm_statistics.
std::unique_ptr<Kernel> prepare_batch_norm(const KernelRequest& request);
/// batch_norm_grad and batch_norm_grad_statistics.
std::unique_ptr<Kernel> prepare_batch_norm_grad(const KernelRequest& request);

}  // namespace paddle::cuda
