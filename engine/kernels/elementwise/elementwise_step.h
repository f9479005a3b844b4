#pragma once
// The loop of an elementwise kernel, for kernels that run several loops block by block.

#include <optional>
#include <string_view>
#include <vector>

#include "kernels/elementwise/loops.h"
#include "ops/core/kernel.h"

namespace paddle::cpu {

struct ElementwiseStep {
  /// Name of the loop in the tables of loops.h, or "where", "logical_right_shift",
  /// "truncated_quotient"; together with types and parameters it defines the loop. Empty for other
  /// loops that are not in a table.
  std::string_view name;
  Loop loop = nullptr;
  std::vector<double> params;
  std::vector<DType> operands;  ///< types that the loop reads, one per operand
  DType result = DType::kF32;   ///< type that the loop writes
  int cost = 1;                 ///< per element, in units of an addition
};

/// The step of a kernel made by `elementwise`; none for other kernels,
/// and for complex numbers, which fusion groups leave out.
std::optional<ElementwiseStep> elementwise_step(const Kernel& kernel);
/// The same with complex numbers, by the names of their loops (complex_loops.cc).
std::optional<ElementwiseStep> any_elementwise_step(const Kernel& kernel);

}  // namespace paddle::cpu
