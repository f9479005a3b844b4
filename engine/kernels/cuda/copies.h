#pragma once
// Kernels that copy elements between windows of any strides: joins, parts, padding, and constants.

#include "ops/core/kernel.h"

namespace paddle::cuda {

/// Copies the window `source` (of the first operand's memory) to the contiguous result.
std::unique_ptr<Kernel> prepare_strided_copy(const KernelRequest& request, const Layout& source);
std::unique_ptr<Kernel> prepare_concat(const KernelRequest& request);
std::unique_ptr<Kernel> prepare_strided_slice_scatter(const KernelRequest& request);
std::unique_ptr<Kernel> prepare_pad(const KernelRequest& request);
std::unique_ptr<Kernel> prepare_full(const KernelRequest& request);
std::unique_ptr<Kernel> prepare_dim_value(const KernelRequest& request);

}  // namespace paddle::cuda
