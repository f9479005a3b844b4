#pragma once
// Elementwise operations, copies and reductions, alone or in fusion groups: the typed program of a
// group (kernels/fusion/program.h) becomes a CUDA program.

#include "ops/core/fused.h"

namespace paddle::cuda {

/// Registered as a backend for fusion groups.
std::unique_ptr<Kernel> prepare_group(const FusedRequest& request);
/// An elementwise operation, a copy of a view, a cast, or a reduction.
std::unique_ptr<Kernel> prepare_single(const KernelRequest& request);
/// True if a group can contain the operation.
bool can_group(const Op& op);

}  // namespace paddle::cuda
