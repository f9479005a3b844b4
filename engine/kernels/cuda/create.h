#pragma once
// Ranges, borders of padded tensors, bytes read as another type, and logsumexp.

#include "ops/core/kernel.h"

namespace paddle::cuda {

std::unique_ptr<Kernel> prepare_arange(const KernelRequest& request);
std::unique_ptr<Kernel> prepare_linspace(const KernelRequest& request);
/// pad with a border that repeats elements of x.
std::unique_ptr<Kernel> prepare_pad_border(const KernelRequest& request);
std::unique_ptr<Kernel> prepare_view_dtype(const KernelRequest& request);
std::unique_ptr<Kernel> prepare_logsumexp(const KernelRequest& request);

}  // namespace paddle::cuda
