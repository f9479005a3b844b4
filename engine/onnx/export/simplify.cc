#include "onnx/export/simplify.h"

#include <algorithm>
#include <map>
#include <set>
#include <unordered_map>

#include "formats/onnx/attributes.h"
#include "formats/onnx/order.h"
#include "onnx/operator_registry.h"

namespace paddle::onnx {
namespace {

using formats::onnx::Attribute;
using formats::onnx::Graph;
using formats::onnx::Node;
using formats::onnx::TensorData;

/// Calls `visit` for every name that a graph reads, in nested graphs too.
template <class Visit>
void for_each_read(const Graph& graph, const Visit& visit) {
  for (const Node& node : graph.nodes) {
    for (const std::string& name : node.inputs)
      if (!name.empty()) visit(name);
    for (const Attribute& attribute : node.attributes)
      for (const auto& inner : attribute.graphs) for_each_read(*inner, visit);
  }
  for (const auto& output : graph.outputs) visit(output.name);
}

}  // namespace

std::unordered_map<std::string, int> count_reads(const Graph& graph) {
  std::unordered_map<std::string, int> reads;
  for_each_read(graph, [&](const std::string& name) { ++reads[name]; });
  return reads;
}

void rename_reads(Graph& graph, const std::unordered_map<std::string, std::string>& renamed) {
  const auto update = [&](std::string& name) {
    if (const auto found = renamed.find(name); found != renamed.end()) name = found->second;
  };
  for (Node& node : graph.nodes) {
    for (std::string& name : node.inputs) update(name);
    for (Attribute& attribute : node.attributes)
      for (const auto& inner : attribute.graphs) {
        rename_reads(*inner, renamed);
        for (auto& output : inner->outputs) update(output.name);
      }
  }
}

namespace {

/// Everything that decides what a node computes.
std::string key_of(const Node& node) {
  std::string out = node.domain + "\n" + node.op_type + "\n" + std::to_string(node.outputs.size());
  for (const std::string& name : node.inputs) out += "\n" + name;
  for (const Attribute& a : node.attributes) {
    out += "\n=" + a.name + ":" + std::to_string(a.i) + ":" + std::to_string(a.f) + ":" + a.s;
    for (const int64_t value : a.ints) out += "," + std::to_string(value);
    for (const float value : a.floats) out += "," + std::to_string(value);
    for (const std::string& value : a.strings) out += "," + value;
  }
  return out;
}

void merge_equal_nodes(Graph& graph) {
  std::set<std::string> outputs;
  for (const auto& output : graph.outputs) outputs.insert(output.name);
  std::map<std::string, std::vector<std::string>> seen;
  std::unordered_map<std::string, std::string> renamed;
  std::vector<Node> kept;
  for (Node& node : graph.nodes) {
    for (std::string& name : node.inputs)
      if (const auto found = renamed.find(name); found != renamed.end()) name = found->second;
    const bool fixed = formats::onnx::has_graphs(node) || is_random(node) ||
                       std::any_of(node.outputs.begin(), node.outputs.end(),
                                   [&](const std::string& name) { return outputs.contains(name); });
    const bool has_tensor = std::any_of(node.attributes.begin(), node.attributes.end(),
                                        [](const Attribute& a) { return !a.tensors.empty(); });
    if (!fixed && !has_tensor) {
      const auto [at, inserted] = seen.emplace(key_of(node), node.outputs);
      if (!inserted) {
        for (size_t i = 0; i < node.outputs.size(); ++i) renamed[node.outputs[i]] = at->second[i];
        continue;
      }
    }
    kept.push_back(std::move(node));
  }
  graph.nodes = std::move(kept);
  rename_reads(graph, renamed);
}

/// The value of an initializer of one int64.
std::optional<int64_t> one_integer(const std::unordered_map<std::string, const TensorData*>& known,
                                   const std::string& name) {
  const auto found = known.find(name);
  if (found == known.end() || found->second->dtype != DType::kI64 ||
      found->second->array.size() != 1)
    return std::nullopt;
  return found->second->array.integer(0);
}

/// Slice of [k, k + 1) along one axis, then Squeeze of that axis: Gather of k.
void gather_single_elements(Graph& graph) {
  std::unordered_map<std::string, const TensorData*> constants;
  for (const TensorData& each : graph.initializers) constants[each.name] = &each;
  const auto reads = count_reads(graph);
  std::unordered_map<std::string, Node*> producers;
  std::vector<TensorData> added;
  std::map<int64_t, std::string> indices;
  for (Node& node : graph.nodes) {
    for (const std::string& name : node.outputs) producers[name] = &node;
    if (node.op_type != "Squeeze" || node.inputs.size() != 2) continue;
    const auto from = producers.find(node.inputs[0]);
    if (from == producers.end() || from->second->op_type != "Slice" ||
        reads.at(node.inputs[0]) != 1 || from->second->inputs.size() < 4)
      continue;
    const Node& slice = *from->second;
    const auto start = one_integer(constants, slice.inputs[1]),
               end = one_integer(constants, slice.inputs[2]),
               axis = one_integer(constants, slice.inputs[3]),
               squeezed = one_integer(constants, node.inputs[1]);
    const auto step = slice.inputs.size() > 4 ? one_integer(constants, slice.inputs[4])
                                              : std::optional<int64_t>(1);
    if (!start || !end || !axis || *start < 0 || *end != *start + 1 || step != 1 ||
        squeezed != axis)
      continue;
    auto index = indices.find(*start);
    if (index == indices.end()) {
      TensorData scalar;
      scalar.name = "index_" + std::to_string(*start);
      while (constants.contains(scalar.name) || reads.contains(scalar.name)) scalar.name += "_";
      scalar.dtype = DType::kI64;
      scalar.array = Array::scalar(*start);
      index = indices.emplace(*start, scalar.name).first;
      added.push_back(std::move(scalar));
    }
    node.op_type = "Gather";
    node.inputs = {slice.inputs[0], index->second};
    node.attributes = {formats::onnx::int_attribute("axis", *axis)};
  }
  for (TensorData& each : added) graph.initializers.push_back(std::move(each));
}

/// Transposes that undo each other, and a Squeeze and an Unsqueeze of the same axes.
void cancel_pairs(Graph& graph) {
  std::unordered_map<std::string, const TensorData*> constants;
  for (const TensorData& each : graph.initializers) constants[each.name] = &each;
  std::unordered_map<std::string, const Node*> producers;
  std::unordered_map<std::string, std::string> renamed;
  std::set<std::string> outputs;
  for (const auto& output : graph.outputs) outputs.insert(output.name);
  const auto same_constant = [&](const std::string& a, const std::string& b) {
    if (a == b) return true;
    const auto x = constants.find(a), y = constants.find(b);
    if (x == constants.end() || y == constants.end() || x->second->shape != y->second->shape)
      return false;
    for (int64_t i = 0; i < x->second->array.size(); ++i)
      if (x->second->array.integer(i) != y->second->array.integer(i)) return false;
    return true;
  };
  const auto undoes = [&](const Node& second, const Node& first) {
    if (second.op_type == "Transpose" && first.op_type == "Transpose") {
      const Attribute *a = first.find("perm"), *b = second.find("perm");
      if (!a || !b || a->ints.size() != b->ints.size()) return false;
      for (size_t i = 0; i < b->ints.size(); ++i)
        if (a->ints.at(static_cast<size_t>(b->ints[i])) != static_cast<int64_t>(i)) return false;
      return true;
    }
    const bool pair = (second.op_type == "Squeeze" && first.op_type == "Unsqueeze") ||
                      (second.op_type == "Unsqueeze" && first.op_type == "Squeeze");
    return pair && second.inputs.size() == 2 && first.inputs.size() == 2 &&
           same_constant(second.inputs[1], first.inputs[1]);
  };
  for (Node& node : graph.nodes) {
    for (std::string& name : node.inputs)
      if (const auto found = renamed.find(name); found != renamed.end()) name = found->second;
    for (const std::string& name : node.outputs) producers[name] = &node;
    if (node.outputs.size() != 1 || node.inputs.empty()) continue;
    const auto from = producers.find(node.inputs[0]);
    if (from == producers.end() || !undoes(node, *from->second)) continue;
    if (outputs.contains(node.outputs[0])) {  // keeps its name
      const std::string before = from->second->inputs[0];
      node.op_type = "Identity";
      node.inputs = {before};
      node.attributes.clear();
    } else {
      renamed[node.outputs[0]] = from->second->inputs[0];
    }
  }
  rename_reads(graph, renamed);
}

/// A node whose only reader is the Identity that names an output makes the output itself.
void name_outputs(Graph& graph) {
  const auto reads = count_reads(graph);
  std::set<std::string> outputs;
  for (const auto& output : graph.outputs) outputs.insert(output.name);
  std::unordered_map<std::string, std::string*> made;
  for (Node& node : graph.nodes)
    for (std::string& name : node.outputs) made[name] = &name;
  std::erase_if(graph.nodes, [&](const Node& node) {
    if (node.op_type != "Identity" || !outputs.contains(node.outputs[0])) return false;
    const auto from = made.find(node.inputs[0]);
    if (from == made.end() || outputs.contains(node.inputs[0]) || reads.at(node.inputs[0]) != 1)
      return false;
    *from->second = node.outputs[0];
    return true;
  });
}

}  // namespace

void remove_unused(Graph& graph) {
  for (bool changed = true; changed;) {
    std::set<std::string> read;
    for_each_read(graph, [&](const std::string& name) { read.insert(name); });
    const auto is_unused = [&](const Node& node) {
      return std::none_of(node.outputs.begin(), node.outputs.end(),
                          [&](const std::string& name) { return read.contains(name); });
    };
    changed = std::erase_if(graph.nodes, is_unused) > 0;
    std::erase_if(graph.initializers,
                  [&](const TensorData& each) { return !read.contains(each.name); });
  }
}

void simplify(Graph& graph) {
  merge_equal_nodes(graph);
  cancel_pairs(graph);
  gather_single_elements(graph);
  remove_unused(graph);
  name_outputs(graph);
}

}  // namespace paddle::onnx
