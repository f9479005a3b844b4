#pragma once
// Cleans up an exported graph: equal nodes once, a slice of one element and its squeeze as a
// gather, nothing that no output needs. Values are not computed, so a graph never grows.

#include <string>
#include <unordered_map>

#include "formats/onnx/model.h"

namespace paddle::onnx {

void simplify(formats::onnx::Graph& graph);
/// How often each value is read, in nested graphs too; an output counts as a read.
std::unordered_map<std::string, int> count_reads(const formats::onnx::Graph& graph);
/// Nodes read the second name of a pair in place of the first, in nested graphs too.
void rename_reads(formats::onnx::Graph& graph,
                  const std::unordered_map<std::string, std::string>& renamed);
/// Nodes and initializers that no output needs.
void remove_unused(formats::onnx::Graph& graph);

}  // namespace paddle::onnx
