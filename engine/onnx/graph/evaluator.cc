#include "onnx/graph/evaluator.h"

#include <algorithm>
#include <cstring>
#include <optional>
#include <stdexcept>
#include <unordered_set>

#include "base/limits.h"
#include "base/source_location.h"
#include "formats/onnx/order.h"
#include "ir/tracer.h"
#include "onnx/graph/checked_executor.h"
#include "onnx/graph/partitions.h"
#include "onnx/graph/shape_values.h"
#include "onnx/graph/string_passthrough.h"
#include "onnx/operator_registry.h"
#include "runtime/execute.h"

namespace paddle::onnx {
namespace {

constexpr int kMaxDepth = 64;

/// Gives a traced value its name in the file. Values that are kept as dims are not traced.
/// Bounds the nesting of graphs and functions; exception-safe.
class DepthScope {
 public:
  explicit DepthScope(int& depth) : depth_(depth) {
    if (++depth_ > kMaxDepth) {
      --depth_;
      fail(ErrorCode::kModel, "graphs and functions are nested more than ", kMaxDepth, " deep");
    }
  }
  ~DepthScope() { --depth_; }
  DepthScope(const DepthScope&) = delete;
  DepthScope& operator=(const DepthScope&) = delete;

 private:
  int& depth_;
};

std::string function_key(const std::string& domain, const std::string& name,
                         const std::string& overload) {
  return domain + "|" + name + "|" + overload;
}

std::string node_title(const formats::onnx::Node& node) {
  const std::string type = node.domain.empty() ? node.op_type : node.domain + "." + node.op_type;
  if (!node.name.empty()) return str("node '", node.name, "' (", type, ")");
  return str("node of ", type, node.outputs.empty() ? "" : " with output '",
             node.outputs.empty() ? "" : node.outputs[0], node.outputs.empty() ? "" : "'");
}

/// The name of a node as operations are marked with it; empty if it has none that prints.
std::string printable_name(const formats::onnx::Node& node) {
  const bool prints = std::all_of(node.name.begin(), node.name.end(), [](char c) {
    return c > ' ' && c != '@' && static_cast<unsigned char>(c) < 0x7f;
  });
  return prints && node.name.size() <= 200 ? node.name : "";
}

}  // namespace

const Value* Scope::find(const std::string& name) const {
  for (const Scope* s = this; s; s = s->outer)
    if (const auto it = s->values.find(name); it != s->values.end()) return &it->second;
  return nullptr;
}

const formats::onnx::Attribute* Scope::attribute(const std::string& name) const {
  for (const Scope* s = this; s; s = s->outer)
    if (s->attributes) {
      const auto it = s->attributes->find(name);
      return it == s->attributes->end() ? nullptr : it->second;
    }
  return nullptr;
}

Value dense_value(const formats::onnx::SparseData& data) {
  const int64_t count = element_count(std::span<const int64_t>(data.shape));
  if (count > limits().memory / std::max<int64_t>(item_size(data.values.dtype), 1))
    fail(ErrorCode::kModel, "the sparse tensor '", data.values.name, "' has ", count,
         " elements, which do not fit into memory");
  const Array values = data.values.array.contiguous();
  Array out = Array::zeros(values.dtype, data.shape);
  const Dims strides = contiguous_strides(data.shape);
  const Array& indices = data.indices.array;
  const int64_t rank = indices.ndim(), item = item_size(values.dtype);
  for (int64_t i = 0; i < values.size(); ++i) {
    int64_t at = 0;
    if (rank == 1) {
      at = indices.integer(i);
    } else {
      const int64_t columns = indices.shape[1];
      for (int64_t d = 0; d < columns; ++d) {
        const int64_t c = indices.integer(i * columns + d);
        if (c < 0 || c >= data.shape[static_cast<size_t>(d)]) at = -1;
        if (at >= 0) at += c * strides[static_cast<size_t>(d)];
      }
    }
    if (at < 0 || at >= out.size())
      fail(ErrorCode::kModel, "the sparse tensor '", data.values.name,
           "' has an index out of range");
    std::memcpy(out.storage->data() + at * item,
                values.storage->data() + (values.offset + i) * item, static_cast<size_t>(item));
  }
  return Value(Tensor(out));
}

Evaluator::Evaluator(const formats::onnx::Model& model) : model_(model) {
  for (const Function& f : model.functions)
    functions_[function_key(f.domain, f.name, f.overload)] = &f;
}

Evaluator::~Evaluator() = default;

void Evaluator::use_partitions(std::unique_ptr<Partitions> partitions) {
  partitions_ = std::move(partitions);
}

Values Evaluator::run(const Values& inputs, const std::map<std::string, Value>& weights) {
  iterations_ = 0;
  Scope scope;
  scope.opsets = &model_.opsets;
  for (const auto& [name, value] : weights) set(scope, name, value);
  for (size_t i = 0; i < inputs.size(); ++i)
    if (!weights.count(model_.graph.inputs[i].name))
      set(scope, model_.graph.inputs[i].name, inputs[i]);
  return run_in(model_.graph, scope);
}

void Evaluator::count_iteration() {
  if (++iterations_ > limits().max_loop_iterations)
    fail(ErrorCode::kModel, "loops have run more than ", limits().max_loop_iterations,
         " iterations in total");
}

Values Evaluator::run(const Graph& graph, const Values& inputs, const Scope& outer) {
  Scope scope;
  scope.outer = &outer;
  if (inputs.size() > graph.inputs.size())
    fail(ErrorCode::kModel, "the graph '", graph.name, "' has ", graph.inputs.size(),
         " inputs, not ", inputs.size());
  // Nodes evaluated here have different shapes in each iteration, or they would be in a partition:
  // kernels should not prepack.
  const runtime::SingleRunScope single_runs(partitions_ != nullptr);
  for (size_t i = 0; i < inputs.size(); ++i) set(scope, graph.inputs[i].name, inputs[i]);
  return run_in(graph, scope);
}

Values Evaluator::run_in(const Graph& graph, Scope& scope) {
  const DepthScope depth(depth_);
  auto [entry, first] = initializers_.try_emplace(&graph);
  if (first) {
    for (const auto& t : graph.initializers) entry->second.emplace_back(t.name, Value::of(t));
    for (const auto& [name, s] : graph.sparse_initializers)
      entry->second.emplace_back(name, dense_value(s));
  }
  // A graph input of the same name overrides an initializer.
  for (const auto& [name, value] : entry->second)
    if (const auto it = scope.values.find(name); it == scope.values.end() || it->second.is_none()) {
      scope.values[name] = value;
      if (partitions_) scope.origins[name] = Origin::kConstants;
    }
  std::vector<std::string> kept;
  for (const auto& out : graph.outputs) kept.push_back(out.name);
  run_nodes(graph.nodes, kept, scope);
  Values outputs;
  for (const auto& out : graph.outputs) {
    const Value* v = scope.find(out.name);
    if (!v) fail(ErrorCode::kModel, "no node produces the output '", out.name, "'");
    outputs.push_back(*v);
  }
  return outputs;
}

void Evaluator::set(Scope& scope, const std::string& name, Value value) {
  if (name.empty()) return;
  if (!scope.values.emplace(name, std::move(value)).second)
    fail(ErrorCode::kModel, "two nodes or inputs define '", name, "'");
}

const Evaluator::LastUses& Evaluator::last_uses_of(const std::vector<Node>& nodes,
                                                   const std::vector<std::string>& kept) {
  auto [entry, first] = last_uses_.try_emplace(nodes.data());
  if (!first) return entry->second;
  LastUses& last_uses = entry->second;
  last_uses.resize(nodes.size());
  std::unordered_set<std::string> later(kept.begin(), kept.end());
  for (size_t i = nodes.size(); i-- > 0;) {
    std::unordered_set<std::string> reads;
    add_reads(nodes[i], reads);
    for (const std::string& out : nodes[i].outputs)
      if (!out.empty() && !later.count(out)) last_uses[i].push_back(out);
    for (const std::string& name : reads)
      if (later.insert(name).second) last_uses[i].push_back(name);
  }
  return last_uses;
}

void Evaluator::run_nodes(const std::vector<Node>& nodes, const std::vector<std::string>& kept,
                          Scope& scope) {
  if (nodes.empty()) return;
  const LastUses& last_uses = last_uses_of(nodes, kept);
  // A function body means something else at each call site, so a partition may contain whole calls
  // but may not lie inside one.
  bool in_function = false;
  for (const Scope* s = &scope; s; s = s->outer) in_function = in_function || s->attributes;
  const bool traced = current_interpreter().traces();
  const bool partitions = partitions_ && !in_function && !traced;
  for (size_t i = 0; i < nodes.size(); ++i) {
    const auto timed = [&](const std::string& what) {
      return profile_ ? ProfileScope(profile_->profile(), profile_->number_of(what))
                      : ProfileScope(nullptr, -1);
    };
    if (partitions) {
      const ProfileScope partition_scope = timed("partition");
      i = partitions_->run(nodes, i, last_uses, scope);
      if (i == nodes.size()) break;
    }
    const Node& node = nodes[i];
    const ProfileScope node_scope = timed(node.op_type);
    Values outputs;
    try {
      std::optional<ir::LocationScope> origin;
      if (traced) origin.emplace(text(paddle::Origin{.layer = printable_name(node)}));
      outputs = run_node(node, scope);
    } catch (const DataDependentError& e) {
      throw DataDependentError(ErrorCode::kModel, node_title(node) + ": " + e.message());
    } catch (const Error& e) {
      if (e.code() == ErrorCode::kInternal || e.code() == ErrorCode::kDevice) throw;
      if (e.message().starts_with("node ")) throw;
      fail(ErrorCode::kModel, node_title(node), ": ", e.message());
    }
    for (size_t k = 0; k < node.outputs.size(); ++k) {
      if (node.outputs[k].empty()) continue;
      if (k >= outputs.size())
        fail(ErrorCode::kModel, node_title(node), ": has no output ", k, " ('", node.outputs[k],
             "')");
      if (traced && outputs[k].is_tensor() && !outputs[k].dims())
        ir::name_traced(outputs[k].tensor(), node.outputs[k]);
      set(scope, node.outputs[k], std::move(outputs[k]));
    }
    if (partitions) Partitions::mark_outputs(node, scope);
    for (const std::string& name : last_uses[i]) scope.values.erase(name);
  }
}

Values Evaluator::run_node(const Node& node, const Scope& scope) {
  Values inputs;
  for (const std::string& name : node.inputs) {
    if (name.empty()) {
      inputs.emplace_back();
      continue;
    }
    const Value* v = scope.find(name);
    if (!v)
      fail(ErrorCode::kModel, "its input '", name,
           "' is undefined (no input, initializer or earlier node has this name)");
    inputs.push_back(*v);
  }
  if (!functions_.empty()) {
    const auto it = functions_.find(function_key(node.domain, node.op_type, node.overload));
    if (it != functions_.end()) return run_function(*it->second, node, inputs, scope);
  }
  const Scope* s = &scope;
  while (!s->opsets) s = s->outer;
  const auto version = s->opsets->find(node.domain);
  int64_t opset = version == s->opsets->end() ? 1 : version->second;
  const Operator& op = find_operator(node, opset);
  NodeCall call(node, opset, inputs, *this, scope);
  if (auto known = shape_value(call)) return {std::move(*known)};
  Values outputs;
  try {
    outputs = is_string_passthrough(node, inputs)
                  ? run_string_passthrough(op, node, opset, inputs, *this, scope)
                  : op.rule(call);
  } catch (const std::out_of_range&) {  // rules index lists whose lengths the file decides
    fail(ErrorCode::kModel, "an attribute or input has too few elements");
  } catch (const std::length_error&) {
    fail(ErrorCode::kModel, "an attribute or input implies a result of impossible size");
  }
  if (observer_) observer_(node, inputs, outputs);
  return outputs;
}

Values Evaluator::run_function(const Function& function, const Node& node, const Values& inputs,
                               const Scope& scope) {
  const DepthScope depth(depth_);
  std::map<std::string, const formats::onnx::Attribute*> attributes;
  for (const auto& a : function.defaults) attributes[a.name] = &a;
  for (const auto& a : node.attributes) {
    const auto* given = a.reference.empty() ? &a : scope.attribute(a.reference);
    if (given) attributes[a.name] = given;
  }
  Scope inner;
  inner.attributes = &attributes;
  inner.opsets = function.opsets.empty() ? &model_.opsets : &function.opsets;
  for (size_t i = 0; i < function.inputs.size(); ++i)
    set(inner, function.inputs[i], i < inputs.size() ? inputs[i] : Value());
  run_nodes(function.nodes, function.outputs, inner);
  Values outputs;
  for (const std::string& name : function.outputs) {
    const Value* v = inner.find(name);
    if (!v)
      fail(ErrorCode::kModel, "the function ", function.name, " does not define its output '", name,
           "'");
    outputs.push_back(*v);
  }
  return outputs;
}

}  // namespace paddle::onnx
