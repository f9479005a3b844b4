#pragma once
// Matrix products with what follows them: a fusion group whose first member is a product computes
// its other members, elementwise operations and sums of columns, before anything is stored.

#include <array>
#include <optional>

#include "kernels/cuda/matmul.h"
#include "ops/core/fused.h"

namespace paddle::cuda {

/// Whether a group can begin with the operation, for operands of these types.
bool begins_product_group(const Op& op, std::span<const DType> operands);
/// The product that a group begins with.
struct FirstProduct {
  Product product;
  std::array<int, 3> inputs;  ///< x, y and bias: operands of the group, -1 if absent
};
/// None for groups that do not begin with a product or have no other member.
std::optional<FirstProduct> first_product(const FusedRequest& request);
/// The group without the product, whose result is its last operand.
FusedRequest after_product(const FusedRequest& request);
/// Null for groups that do not begin with a product, and for sums along rows.
std::unique_ptr<Kernel> prepare_product_group(const FusedRequest& request);

}  // namespace paddle::cuda
