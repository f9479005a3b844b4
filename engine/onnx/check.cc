#include "onnx/check.h"

#include <algorithm>
#include <unordered_set>

#include "onnx/evaluator.h"

namespace paddle::onnx {
namespace {

using formats::onnx::Graph;
using formats::onnx::Model;
using formats::onnx::Node;
using Opsets = std::map<std::string, int64_t>;

std::string title(const Node& node) { return str("node '", node.name, "' (", node.op_type, ")"); }

/// The names that a graph's nodes see.
struct Names {
  const Names* outer = nullptr;
  std::unordered_set<std::string> own;

  bool has(const std::string& name) const {
    return own.count(name) > 0 || (outer && outer->has(name));
  }
  void add(const std::string& name, const std::string& by) {
    if (!name.empty() && !own.insert(name).second)
      fail(ErrorCode::kModel, by, " gives '", name, "', which another node or input gives too");
  }
};

class Checker {
 public:
  explicit Checker(const Model& model) : model_(model) {}

  void graph(const Graph& g, const Names* outer, const Opsets& opsets) {
    Names names{outer, {}};
    for (const auto& input : g.inputs) names.add(input.name, "an input");
    for (const auto& t : g.initializers) names.own.insert(t.name);
    for (const auto& s : g.sparse_initializers) names.own.insert(s.first);
    nodes(g.nodes, names, opsets);
    for (const auto& output : g.outputs)
      if (!names.has(output.name))
        fail(ErrorCode::kModel, "nothing gives the output '", output.name, "'");
  }

  void functions() {
    for (const auto& f : model_.functions) {
      Names names;
      for (const std::string& input : f.inputs) names.add(input, "an input");
      nodes(f.nodes, names, f.opsets.empty() ? model_.opsets : f.opsets);
      for (const std::string& output : f.outputs)
        if (!names.has(output))
          fail(ErrorCode::kModel, "the function ", f.name, " does not give '", output, "'");
    }
  }

 private:
  void nodes(const std::vector<Node>& all, Names& names, const Opsets& opsets) {
    for (const Node& node : all) {
      const bool local = std::any_of(
          model_.functions.begin(), model_.functions.end(),
          [&](const auto& f) { return f.name == node.op_type && f.domain == node.domain; });
      const auto version = opsets.find(node.domain);
      if (!local) find_operator(node, version == opsets.end() ? 1 : version->second);
      for (const std::string& input : node.inputs)
        if (!input.empty() && !names.has(input))
          fail(ErrorCode::kModel, title(node), ": its input '", input,
               "' is given by nothing before it (no input, initialiser or earlier node)");
      for (const auto& a : node.attributes)
        for (const auto& g : a.graphs) graph(*g, &names, opsets);
      for (const std::string& output : node.outputs) names.add(output, title(node));
    }
  }

  const Model& model_;
};

}  // namespace

void check_model(const Model& model) {
  Checker checker(model);
  checker.graph(model.graph, nullptr, model.opsets);
  checker.functions();
}

}  // namespace paddle::onnx
