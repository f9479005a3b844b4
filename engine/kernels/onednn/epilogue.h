#pragma once
// Fusion groups that are a convolution or matmul with an epilogue, run as one primitive with
// post-ops.

#include <span>

#include "ops/core/fused.h"

namespace paddle::onednn {

/// True if a kernel for `group`, which begins with a convolution or matmul, can apply `next` as
/// part of its epilogue.
bool can_fuse_epilogue(const TargetInfo& target, std::span<const FusionMember> group,
                       const FusionMember& next, DType dtype);
std::unique_ptr<Kernel> prepare_with_epilogue(const FusedRequest& request);

}  // namespace paddle::onednn
