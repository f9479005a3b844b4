#pragma once
// Symbolic evaluation of shape arithmetic that exporters emit: sizes that are gathered, multiplied,
// concatenated and compared. Computed on dims, so that shapes stay known while tracing.

#include "onnx/graph/node_call.h"

namespace paddle::onnx {

/// The node's output as dims, if it computes on symbolic dims (or reads a shape) and the result is
/// known; otherwise nullopt, and the operator's rule applies.
std::optional<Value> shape_value(const NodeCall& call);

}  // namespace paddle::onnx
