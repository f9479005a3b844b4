#pragma once
// Sorting along an axis, and search in sorted rows.

#include "ops/core/kernel.h"

namespace paddle::cuda {

std::unique_ptr<Kernel> prepare_sort_pairs(const KernelRequest& request);
std::unique_ptr<Kernel> prepare_searchsorted(const KernelRequest& request);

}  // namespace paddle::cuda
