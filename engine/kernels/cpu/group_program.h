#pragma once
// A group of elementwise operations in steps that are typed as the kernels compute them: what is
// read in which element type, converted, computed and stored. Whoever runs groups, block by block
// (fused.h) or as machine code (codegen/), follows the same program and gives the same bits.

#include <optional>
#include <vector>

#include "kernels/cpu/map_step.h"
#include "ops/fused.h"

namespace paddle::cpu {

struct GroupNode {
  enum class Kind : uint8_t {
    kRead,     ///< an operand, expanded to the shape of the results, in this type
    kConvert,  ///< another node in this type
    kApply,    ///< a loop over nodes that have the types of its operands
  };
  Kind kind = Kind::kRead;
  DType type = DType::kF32;
  int operand = -1;         ///< kRead
  std::vector<int> inputs;  ///< nodes
  MapStep step;             ///< kApply
};

struct GroupProgram {
  std::vector<GroupNode> nodes;
  /// Per result the node that it takes. Where its type is another one, it is converted when stored.
  std::vector<int> results;
  int cost = 0;  ///< of an element, in units of an addition
};

/// None if an operation of the group is no map over elements. 16-bit floats stay in f32 between
/// operations.
std::optional<GroupProgram> group_program(const FusedRequest& request);

}  // namespace paddle::cpu
