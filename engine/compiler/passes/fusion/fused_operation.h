#pragma once
// Groups of operations in the IR: one operation whose region holds them, for one kernel that
// computes them together.

#include <functional>
#include <memory>
#include <vector>

#include "ir/module.h"

namespace paddle::passes {

/// Operations in an order in which they can run.
using Members = std::vector<std::unique_ptr<ir::Operation>>;

/// Wraps the members in one operation `op`, which has a list of operands and no attributes of its
/// own. Values that are used outside become its results; inside the region they are replaced by new
/// values.
std::unique_ptr<ir::Operation> make_group(
    ir::Function& function, const Op& op, Members members,
    const std::function<bool(const ir::Value*)>& is_used_outside);
/// The same as `fused`.
std::unique_ptr<ir::Operation> make_fused(
    ir::Function& function, Members members,
    const std::function<bool(const ir::Value*)>& is_used_outside);
/// The members of a group, as they were before.
Members dissolve(ir::Operation& group);

}  // namespace paddle::passes
