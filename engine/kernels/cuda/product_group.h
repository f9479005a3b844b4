#pragma once
// Matrix products with what follows them: a fusion group whose first member is a product computes
// its other members, elementwise operations and sums of columns, before anything is stored.

#include "ops/core/fused.h"

namespace paddle::cuda {

/// Whether a group can begin with the operation, for operands of these types.
bool begins_product_group(const Op& op, std::span<const DType> operands);
/// Null for groups that do not begin with a product, and for sums along rows.
std::unique_ptr<Kernel> prepare_product_group(const FusedRequest& request);

}  // namespace paddle::cuda
