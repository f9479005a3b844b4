#pragma once
// Equal elements: modes, different elements, and numbers of elements in bins.

#include "ops/core/kernel.h"

namespace paddle::cuda {

std::unique_ptr<Kernel> prepare_mode(const KernelRequest& request);
/// unique and unique_consecutive; many slices of several elements are left to the host.
std::unique_ptr<Kernel> prepare_unique(const KernelRequest& request);
std::unique_ptr<Kernel> prepare_bincount(const KernelRequest& request);
std::unique_ptr<Kernel> prepare_histogram(const KernelRequest& request);

}  // namespace paddle::cuda
