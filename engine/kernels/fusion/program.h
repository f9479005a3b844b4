#pragma once
// A fusion group as a program of typed steps: what is read, in which element type, what is
// converted, computed and stored. The block interpreter (block_interpreter.h) and the code
// generator (codegen/) execute the same program and produce the same bits.

#include <optional>
#include <vector>

#include "kernels/elementwise/elementwise_step.h"
#include "kernels/reduce/reduce.h"
#include "ops/core/fused.h"

namespace paddle::cpu {

struct FusionNode {
  enum class Kind : uint8_t {
    kRead,     ///< an operand, broadcast to the shape of the group, in this type
    kConvert,  ///< another node, converted to this type
    kApply,    ///< a vector loop over nodes of its operand types
  };
  Kind kind = Kind::kRead;
  DType type = DType::kF32;
  int operand = -1;         ///< for kRead
  std::vector<int> inputs;  ///< indices of nodes
  ElementwiseStep step;     ///< for kApply
};

/// A result that is stored element by element, converted where its type differs from the node's.
struct FusionStore {
  int node = 0;
  int result = 0;
};

/// A result that reduces the elements of a node.
struct FusionReduction {
  int node = 0;
  int result = 0;
  ReduceCall call;
  DType operand = DType::kF32;  ///< type of the node
  DType result_type = DType::kF32;
};
constexpr size_t kMaxFusionReductions = 4;

struct FusionProgram {
  std::vector<FusionNode> nodes;
  std::vector<FusionStore> stores;
  std::vector<FusionReduction> reductions;  ///< all over the same axes
  int cost = 0;                             ///< per element, in units of an addition
};

/// None if an operation is neither elementwise nor a reduction of floats that is a result of the
/// group, or if reductions have different axes. 16-bit floats stay in f32 between operations.
std::optional<FusionProgram> build_fusion_program(const FusedRequest& request);

}  // namespace paddle::cpu
