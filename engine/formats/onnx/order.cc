#include "formats/onnx/order.h"

#include <algorithm>
#include <functional>
#include <queue>
#include <unordered_map>

namespace paddle::formats::onnx {
namespace {

/// Consumers of each node, and the number of its pending producers.
struct Dependences {
  std::vector<std::vector<size_t>> readers;
  std::vector<size_t> waits;
  bool sorted = true;  ///< no node precedes its producers
};

Dependences dependences(const std::vector<Node>& nodes) {
  std::unordered_map<std::string, size_t> givers;
  for (size_t i = 0; i < nodes.size(); ++i)
    for (const std::string& output : nodes[i].outputs)
      if (!output.empty()) givers.emplace(output, i);
  Dependences out{std::vector<std::vector<size_t>>(nodes.size()),
                  std::vector<size_t>(nodes.size(), 0)};
  for (size_t i = 0; i < nodes.size(); ++i) {
    std::unordered_set<std::string> names;
    add_reads(nodes[i], names);
    for (const std::string& name : names) {
      const auto giver = givers.find(name);
      if (giver == givers.end()) continue;
      out.readers[giver->second].push_back(i);
      ++out.waits[i];
      out.sorted = out.sorted && giver->second < i;
    }
  }
  return out;
}

}  // namespace

bool has_graphs(const Node& node) {
  return std::any_of(node.attributes.begin(), node.attributes.end(),
                     [](const Attribute& a) { return !a.graphs.empty(); });
}

void add_reads(const Node& node, std::unordered_set<std::string>& names) {
  names.insert(node.inputs.begin(), node.inputs.end());
  for (const auto& a : node.attributes)
    for (const auto& g : a.graphs) {
      for (const auto& inner : g->nodes) add_reads(inner, names);
      for (const auto& out : g->outputs) names.insert(out.name);
    }
}

void sort_nodes(std::vector<Node>& nodes) {
  Dependences d = dependences(nodes);
  if (d.sorted) return;
  std::priority_queue<size_t, std::vector<size_t>, std::greater<>> ready;
  for (size_t i = 0; i < nodes.size(); ++i)
    if (d.waits[i] == 0) ready.push(i);
  std::vector<size_t> order;
  while (!ready.empty()) {
    order.push_back(ready.top());
    ready.pop();
    for (const size_t reader : d.readers[order.back()])
      if (--d.waits[reader] == 0) ready.push(reader);
  }
  if (order.size() != nodes.size()) return;
  std::vector<Node> sorted;
  for (const size_t i : order) sorted.push_back(std::move(nodes[i]));
  nodes = std::move(sorted);
}

}  // namespace paddle::formats::onnx
