#pragma once
// Outputs that the caller chooses among all values of a graph.

#include <set>
#include <string>

#include "formats/onnx/model.h"

namespace paddle::onnx {

/// If one of the names is a value inside of the graph rather than an output, these values become
/// the graph's outputs, and nodes and inputs that they do not need are removed. Nothing changes if
/// all names are outputs, or if one is unknown.
void select_outputs(formats::onnx::Graph& graph, const std::set<std::string>& names);

}  // namespace paddle::onnx
