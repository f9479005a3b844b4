#pragma once
// Copies of operations, within a function or into another one. `replay` (replay.h) copies
// whole regions through an interpreter; this keeps operations as they are, fusion groups included.

#include <unordered_map>

#include "ir/module.h"

namespace paddle::ir {

/// The values of a copy by those of the original.
using Copies = std::unordered_map<const Value*, Value*>;

/// Appends a copy of the operation to a region of `function`. Operands that have a copy are
/// replaced by it; constants get one where `function` lacks it; others stay as they are. Results
/// are added to `copies`.
Operation* clone_operation(Function& function, Region& region, const Operation& operation,
                           Copies& copies);

/// A copy of the whole function.
std::unique_ptr<Function> clone(const Function& function);

}  // namespace paddle::ir
