#include "onnx/graph/select_outputs.h"

#include <algorithm>
#include <iterator>
#include <utility>
#include <vector>

namespace paddle::onnx {
namespace {

using formats::onnx::Graph;
using formats::onnx::Node;
using formats::onnx::ValueInfo;

/// Names that the node reads, also inside of its graphs.
void add_reads(const Node& node, std::set<std::string>& reads) {
  reads.insert(node.inputs.begin(), node.inputs.end());
  for (const auto& attribute : node.attributes)
    for (const auto& graph : attribute.graphs) {
      for (const Node& inner : graph->nodes) add_reads(inner, reads);
      for (const ValueInfo& output : graph->outputs) reads.insert(output.name);
    }
}

const ValueInfo* find(const std::vector<ValueInfo>& values, const std::string& name) {
  const auto it = std::ranges::find(values, name, &ValueInfo::name);
  return it == values.end() ? nullptr : &*it;
}

}  // namespace

void select_outputs(Graph& graph, const std::set<std::string>& names) {
  std::vector<std::string> computed;
  for (const Node& node : graph.nodes)
    std::ranges::copy_if(node.outputs, std::back_inserter(computed),
                         [&](const std::string& name) { return names.contains(name); });
  for (const ValueInfo& output : graph.outputs)
    if (names.contains(output.name) && std::ranges::count(computed, output.name) == 0)
      computed.push_back(output.name);  // an input or a constant
  const bool all_outputs = std::ranges::all_of(
      names, [&](const std::string& name) { return find(graph.outputs, name) != nullptr; });
  if (all_outputs || computed.size() != names.size()) return;

  std::vector<ValueInfo> outputs;
  for (const std::string& name : computed) {
    const ValueInfo* known = find(graph.outputs, name);
    if (!known) known = find(graph.values, name);
    ValueInfo& output = outputs.emplace_back();
    if (known) output = *known;
    output.name = name;
  }
  graph.outputs = std::move(outputs);

  std::set<std::string> needed = names;
  std::vector<Node> nodes;
  while (!graph.nodes.empty()) {
    Node& node = graph.nodes.back();
    if (std::ranges::any_of(node.outputs,
                            [&](const std::string& name) { return needed.contains(name); })) {
      add_reads(node, needed);
      nodes.push_back(std::move(node));
    }
    graph.nodes.pop_back();
  }
  std::ranges::reverse(nodes);
  graph.nodes = std::move(nodes);
  const auto is_idle = [&](const auto& each) { return !needed.contains(each.name); };
  std::erase_if(graph.inputs, is_idle);
  std::erase_if(graph.initializers, is_idle);
}

}  // namespace paddle::onnx
