#pragma once
// Running a function's operations again under the current interpreter: to evaluate it eagerly, to
// clone it into another trace, or to differentiate a region.

#include <unordered_map>

#include "ir/module.h"

namespace paddle::ir {

using ValueMap = std::unordered_map<const Value*, Tensor>;

/// Replays a region's operations. `values` maps arguments (and values from outside) to tensors and
/// is extended by every result. Constants need no entry. Gives the region's results.
Tensors replay(const Region& region, ValueMap& values);
/// Replays a function on one tensor per input.
Tensors replay(const Function& function, const Tensors& inputs);

/// Replays the function under `rewriter`, which passes on what it leaves as it is; what is traced
/// below it takes the place of the function's operations. Inputs, outputs and constraints stay.
void rewrite(Function& function, Interpreter& rewriter);

/// Values that a region (nested ones included) uses but does not define, constants left out.
std::vector<Value*> captures(const Region& region);

}  // namespace paddle::ir
