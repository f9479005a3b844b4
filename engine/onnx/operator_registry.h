#pragma once
// Finds the implementation of a node's operator by domain, name and opset version.

#include "onnx/graph/node_call.h"

namespace paddle::onnx {

/// The newest supported opset of the default domain.
constexpr int64_t kNewestOpset = 28;

/// The newest version of the node's operator that is not newer than `opset`. kModel with the
/// nearest name if there is none. com.microsoft falls back to the standard operator of that name;
/// `opset` is then set to kNewestOpset.
const Operator& find_operator(const formats::onnx::Node& node, int64_t& opset);
bool is_known_operator(const formats::onnx::Node& node, int64_t opset);
/// Whether the operator draws random numbers, so that its value differs between calls.
bool is_random(const formats::onnx::Node& node);

}  // namespace paddle::onnx
