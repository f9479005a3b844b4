#pragma once
// Subgraphs of nodes, and the topological order of a graph's nodes.

#include <string>
#include <unordered_set>
#include <vector>

#include "formats/onnx/model.h"

namespace paddle::formats::onnx {

/// Adds the names that a node reads, including those read by its subgraphs.
void add_reads(const Node& node, std::unordered_set<std::string>& names);

/// Whether a node has subgraphs.
bool has_graphs(const Node& node);

/// Sorts nodes topologically, as the standard requires and some exporters do not; otherwise keeps
/// the order. Nodes on cycles stay where they are.
void sort_nodes(std::vector<Node>& nodes);

}  // namespace paddle::formats::onnx
