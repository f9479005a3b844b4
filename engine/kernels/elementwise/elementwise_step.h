#pragma once
// What an elementwise kernel does to a block of elements, for kernels that run several of them
// block by block.

#include <optional>
#include <string_view>
#include <vector>

#include "kernels/elementwise/loops.h"
#include "ops/kernel.h"

namespace paddle::cpu {

struct ElementwiseStep {
  /// Of the loop, as in the tables of loops.h, or "where"; with the types and parameters it says
  /// all that the loop does. Empty for loops that are not in a table.
  std::string_view name;
  Loop loop = nullptr;
  std::vector<double> params;
  std::vector<DType> operands;  ///< the types that the loop reads, one per operand
  DType result = DType::kF32;   ///< the type that it writes
  int cost = 1;                 ///< of an element, in units of an addition
};

/// The step of a kernel made by `elementwise`; none for other kernels.
std::optional<ElementwiseStep> elementwise_step(const Kernel& kernel);

}  // namespace paddle::cpu
