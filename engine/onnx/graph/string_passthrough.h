#pragma once
// Runs operators that only move or compare elements on string tensors by replacing each string with
// its rank among the sorted distinct strings.

#include "onnx/graph/node_call.h"

namespace paddle::onnx {

/// Whether the node is such an operator and has string inputs.
bool is_string_passthrough(const formats::onnx::Node& node, const Values& inputs);

/// Runs the operator's rule on ranks. DataDependentError while tracing if the ranks are unknown.
Values run_string_passthrough(const Operator& op, const formats::onnx::Node& node, int64_t opset,
                              const Values& inputs, Evaluator& evaluator, const Scope& scope);

}  // namespace paddle::onnx
