#pragma once
// The order of a graph's nodes.

#include <string>
#include <unordered_set>
#include <vector>

#include "formats/onnx/model.h"

namespace paddle::formats::onnx {

/// Adds the names that a node reads, those of graphs inside it included.
void add_reads(const Node& node, std::unordered_set<std::string>& names);

/// Brings nodes behind those that give what they read, as the standard asks for and some writers do
/// not do; others keep their places. Nodes that wait for each other stay as they are.
void sort_nodes(std::vector<Node>& nodes);

}  // namespace paddle::formats::onnx
