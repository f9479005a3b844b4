#pragma once
// Kernels that read and store other types, or in other places, than their operation states: a group
// of an operation with the casts around it, or with the concat of its results, is its kernel for
// operands and results as they are in memory.

#include <functional>

#include "ops/core/fused.h"

namespace paddle::cuda {

using KernelOf = std::function<std::unique_ptr<Kernel>(const KernelRequest& request)>;

/// `kernel_of` prepares kernels of single operations. Null for groups of another form, and where it
/// has no kernel for these types and strides.
std::unique_ptr<Kernel> prepare_conversions(const FusedRequest& request, const KernelOf& kernel_of);

}  // namespace paddle::cuda
