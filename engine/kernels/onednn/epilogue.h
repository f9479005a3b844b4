#pragma once
// What a convolution or matrix product does to each element of its result before writing it: adds
// an element of another tensor, applies an activation. Groups of operations that end so become one
// primitive with post-operations.

#include <array>
#include <span>

#include "ops/fused.h"

namespace paddle::onednn {

bool takes_along(std::span<const GroupMember> group, const GroupMember& next, DType dtype);
std::unique_ptr<Kernel> prepare_with_epilogue(const FusedRequest& request);

}  // namespace paddle::onednn
