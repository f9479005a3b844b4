#include "onnx/graph/check_model.h"

#include <algorithm>
#include <map>
#include <unordered_set>

#include "base/limits.h"
#include "onnx/graph/evaluator.h"
#include "onnx/operator_registry.h"

namespace paddle::onnx {
namespace {

using formats::onnx::Graph;
using formats::onnx::Model;
using formats::onnx::Node;
using Opsets = std::map<std::string, int64_t>;

constexpr int kMaxNesting = 64;

std::string title(const Node& node) { return str("node '", node.name, "' (", node.op_type, ")"); }

/// Names visible to the nodes of a graph.
struct Names {
  const Names* outer = nullptr;
  std::unordered_set<std::string> own;

  bool has(const std::string& name) const {
    return own.count(name) > 0 || (outer && outer->has(name));
  }
  void add(const std::string& name, const std::string& by) {
    if (!name.empty() && !own.insert(name).second)
      fail(ErrorCode::kModel, by, " defines '", name,
           "', which another node or input defines already");
  }
};

class Checker {
 public:
  explicit Checker(const Model& model) : model_(model) {
    for (const auto& f : model.functions) functions_.emplace(std::pair(f.domain, f.name), &f);
  }

  /// Newer opsets may change what operators mean.
  static void version(const Opsets& opsets) {
    if (const auto it = opsets.find(""); it != opsets.end() && it->second > kNewestOpset)
      fail(ErrorCode::kModel, "the model needs opset ", it->second,
           " of ONNX, the newest supported one is ", kNewestOpset);
  }

  /// Nested function calls can expand exponentially.
  void expansion() {
    if (expanded_count(model_.graph.nodes, 0) > limits().expanded_nodes)
      fail(ErrorCode::kModel, "with its functions expanded the graph has more than ",
           limits().expanded_nodes, " nodes");
  }

  void graph(const Graph& g, const Names* outer, const Opsets& opsets) {
    Names names{outer, {}};
    for (const auto& input : g.inputs) names.add(input.name, "an input");
    for (const auto& t : g.initializers) names.own.insert(t.name);
    for (const auto& s : g.sparse_initializers) names.own.insert(s.first);
    nodes(g.nodes, names, opsets);
    for (const auto& output : g.outputs)
      if (!names.has(output.name))
        fail(ErrorCode::kModel, "no node produces the output '", output.name, "'");
  }

  void functions() {
    for (const auto& f : model_.functions) {
      version(f.opsets);
      Names names;
      for (const std::string& input : f.inputs) names.add(input, "an input");
      nodes(f.nodes, names, f.opsets.empty() ? model_.opsets : f.opsets);
      for (const std::string& output : f.outputs)
        if (!names.has(output))
          fail(ErrorCode::kModel, "the function ", f.name, " does not define its output '", output,
               "'");
    }
  }

 private:
  void nodes(const std::vector<Node>& all, Names& names, const Opsets& opsets) {
    for (const Node& node : all) {
      const bool local = functions_.count({node.domain, node.op_type}) > 0;
      const auto version = opsets.find(node.domain);
      int64_t opset = version == opsets.end() ? 1 : version->second;
      if (!local) find_operator(node, opset);
      for (const std::string& input : node.inputs)
        if (!input.empty() && !names.has(input))
          fail(ErrorCode::kModel, title(node), ": its input '", input,
               "' is undefined (no input, initializer or earlier node has this name)");
      for (const auto& a : node.attributes)
        for (const auto& g : a.graphs) graph(*g, &names, opsets);
      for (const std::string& output : node.outputs) names.add(output, title(node));
    }
  }

  /// Counts nodes including subgraphs and expanded functions, up to the limit.
  int64_t expanded_count(const std::vector<Node>& nodes, int depth) {
    if (depth > kMaxNesting)
      fail(ErrorCode::kModel, "graphs and functions are nested more than ", kMaxNesting, " deep");
    int64_t count = 0;
    for (const Node& node : nodes) {
      ++count;
      for (const auto& a : node.attributes)
        for (const auto& g : a.graphs) count += expanded_count(g->nodes, depth + 1);
      if (const auto f = functions_.find({node.domain, node.op_type}); f != functions_.end()) {
        auto size = sizes_.find(f->second);
        if (size == sizes_.end())
          size = sizes_.emplace(f->second, expanded_count(f->second->nodes, depth + 1)).first;
        count += size->second;
      }
      if (count > limits().expanded_nodes) return count;
    }
    return count;
  }

  const Model& model_;
  std::map<std::pair<std::string, std::string>, const formats::onnx::Function*> functions_;
  std::map<const formats::onnx::Function*, int64_t> sizes_;
};

}  // namespace

void check_model(const Model& model) {
  Checker checker(model);
  Checker::version(model.opsets);
  checker.graph(model.graph, nullptr, model.opsets);
  checker.functions();
  checker.expansion();
}

}  // namespace paddle::onnx
