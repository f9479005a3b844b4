#pragma once
// Operations that no kernel accepts, run call by call as their decomposition. Eager mode and plans
// use it alike: where a kernel declines, which depends on layouts and dtypes, the result is the
// same in both.

#include <memory>
#include <vector>

#include "ops/core/kernel.h"

namespace paddle::runtime {

/// The results of the operation's decomposition; the operation has one. Operands are on the
/// target's device, null where absent.
std::vector<Array> execute_decomposition(const Op& op, const Attrs& attrs,
                                         const std::vector<const Array*>& operands,
                                         const std::vector<TensorType>& types,
                                         const TargetInfo& target, const PrepareOptions& prepare);

/// A kernel that runs the decomposition and allocates its values while it runs; null for operations
/// that have none.
std::unique_ptr<Kernel> prepare_decomposition(const KernelRequest& request);

}  // namespace paddle::runtime
