#pragma once
// Fusion groups in the IR: an operation `fused` whose region holds the operations of the group, for
// one kernel that computes them together.

#include <memory>
#include <vector>

#include "ir/module.h"

namespace paddle::passes {

/// A member of a group: an operation of one result, and whether it is used outside the group.
struct FusedMember {
  std::unique_ptr<ir::Operation> operation;
  bool used_outside;
};

/// Wraps the members, in this order, in one `fused` operation. Values that are used outside become
/// its results; inside the region they are replaced by new values.
std::unique_ptr<ir::Operation> make_fused(ir::Function& function, std::vector<FusedMember> members);

}  // namespace paddle::passes
