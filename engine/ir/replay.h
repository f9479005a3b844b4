#pragma once
// Replays the operations of a function under the current interpreter: to evaluate it eagerly, to
// clone it into another trace, to differentiate a region, or to transform it (`retrace`).

#include <unordered_map>

#include "ir/module.h"

namespace paddle::ir {

using ValueMap = std::unordered_map<const Value*, Tensor>;

/// Replays the operations of a region and returns its results. `values` maps arguments and captured
/// values to tensors and is extended by every result; constants need no entry.
Tensors replay(const Region& region, ValueMap& values);
/// Replays one operation, whose results `values` is extended by, too.
Tensors replay(const Operation& operation, ValueMap& values);
/// Replays a function on one tensor per input.
Tensors replay(const Function& function, const Tensors& inputs);

/// Transforms a function by replaying it under `interpreter` with a tracer below: what is traced
/// replaces the operations of the function. Inputs, outputs and constraints stay.
void retrace(Function& function, Interpreter& interpreter);
/// Traces the operations again as they are, for the function's target.
void retrace(Function& function);
/// The same as a new function, without the constraints.
std::unique_ptr<Function> retraced(const Function& function, Interpreter& interpreter);

/// Values that a region, nested ones included, uses but does not define, except constants.
std::vector<Value*> captures(const Region& region);

}  // namespace paddle::ir
