#pragma once
// Strings in the operators that move or compare elements whatever they are: the rules of these know
// numbers only and are given, for strings, the places of these in their order.

#include "onnx/graph/node_call.h"

namespace paddle::onnx {

/// Whether the node is of such an operator and has strings among its inputs.
bool is_string_passthrough(const formats::onnx::Node& node, const Values& inputs);

/// What its rule gives; DataDependentError while tracing if that is not known.
Values run_string_passthrough(const Operator& op, const formats::onnx::Node& node, int64_t opset,
                              const Values& inputs, Evaluator& evaluator, const Scope& scope);

}  // namespace paddle::onnx
