#pragma once
// A group of elementwise operations, and of reductions of what they give, in steps that are typed
// as the kernels compute them: what is read in which element type, converted, computed and stored.
// Whoever runs groups, block by block (fused.h) or as machine code (codegen/), follows the same
// program and gives the same bits.

#include <optional>
#include <vector>

#include "kernels/elementwise/elementwise_step.h"
#include "kernels/reduce/reduce.h"
#include "ops/fused.h"

namespace paddle::cpu {

struct FusionNode {
  enum class Kind : uint8_t {
    kRead,     ///< an operand, expanded to the shape of the group, in this type
    kConvert,  ///< another node in this type
    kApply,    ///< a loop over nodes that have the types of its operands
  };
  Kind kind = Kind::kRead;
  DType type = DType::kF32;
  int operand = -1;         ///< kRead
  std::vector<int> inputs;  ///< nodes
  ElementwiseStep step;     ///< kApply
};

/// A result that is computed element by element. Where its type is another one than its node's, it
/// is converted when stored.
struct FusionStore {
  int node = 0;
  int result = 0;
};

/// A result that folds the elements of a node.
struct FusionReduction {
  int node = 0;
  int result = 0;
  ReduceCall call;
  DType operand = DType::kF32;  ///< the node's type
  DType result_type = DType::kF32;
};
constexpr size_t kMaxFusionReductions = 4;

struct FusionProgram {
  std::vector<FusionNode> nodes;
  std::vector<FusionStore> stores;
  std::vector<FusionReduction> reductions;  ///< all over the same axes
  int cost = 0;                             ///< of an element, in units of an addition
};

/// None if an operation of the group is neither a map over elements nor a reduction of floats whose
/// result is one of the group's, or if reductions differ in their axes. 16-bit floats stay in f32
/// between operations.
std::optional<FusionProgram> build_fusion_program(const FusedRequest& request);

}  // namespace paddle::cpu
