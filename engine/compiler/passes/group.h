#pragma once
// Groups of operations: one operation `fused` whose region holds them, for a kernel that computes
// them together.

#include <memory>
#include <vector>

#include "ir/module.h"

namespace paddle::passes {

/// An operation of one result, and whether others than the group's operations read that result.
struct GroupPart {
  std::unique_ptr<ir::Operation> operation;
  bool read_outside;
};

/// The parts, in their order, as one operation. Values that are read outside keep their identity
/// and become its results; the region computes new ones.
std::unique_ptr<ir::Operation> make_group(ir::Function& function, std::vector<GroupPart> parts);

}  // namespace paddle::passes
