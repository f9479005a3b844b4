#pragma once
// What exporters compute on shapes: sizes gathered, multiplied, joined and compared. On symbolic
// dims that is done on the dims themselves, so that shapes stay known while tracing.

#include "onnx/graph/node_call.h"

namespace paddle::onnx {

/// The node's output as dims, if it computes on dims of which one at least is a symbol (or takes
/// a shape) and the result can be told; else nullopt, and the ordinary rule applies.
std::optional<Value> shape_value(const NodeCall& call);

}  // namespace paddle::onnx
