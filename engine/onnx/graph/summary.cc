#include "onnx/graph/summary.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>

#include "onnx/graph/graph_format.h"
#include "onnx/graph/session.h"
#include "onnx/operator_registry.h"

namespace paddle::onnx {
namespace {

using formats::onnx::Model;
using formats::onnx::Node;
using formats::onnx::ValueType;

std::string type_name(const Node& node) {
  const bool is_own = node.domain.empty() || added_format(node.domain);
  return printable(is_own ? node.op_type : node.domain + "." + node.op_type);
}

/// Operator counts, including subgraphs and functions, and unknown operators.
struct Census {
  std::map<std::string, int64_t> counts;
  std::set<std::string> unknown;

  void add(const Model& model, const std::vector<Node>& nodes,
           const std::map<std::string, int64_t>& opsets) {
    for (const Node& node : nodes) {
      ++counts[type_name(node)];
      const bool local = std::any_of(
          model.functions.begin(), model.functions.end(),
          [&](const auto& f) { return f.name == node.op_type && f.domain == node.domain; });
      const auto version = opsets.find(node.domain);
      const int64_t opset = version == opsets.end() ? 1 : version->second;
      if (!local && !is_known_operator(node, opset))
        unknown.insert(str(type_name(node), " (opset ", opset, ")"));
      for (const auto& a : node.attributes)
        for (const auto& g : a.graphs) add(model, g->nodes, opsets);
    }
  }
};

/// Zero inputs with the declared shapes; nullopt if a shape is not declared.
std::optional<Values> zeros_for(const Session& session,
                                const std::map<std::string, int64_t>& dims) {
  Values out;
  for (const auto& input : session.inputs()) {
    if (input.type.kind != ValueType::Kind::kTensor || !input.type.dtype || !input.type.shape ||
        !info(*input.type.dtype).has_kernels)
      return std::nullopt;
    Dims shape;
    for (const Dim& d : *input.type.shape) {
      const auto it = d.is_constant() ? dims.end() : dims.find(d.text());
      shape.push_back(d.is_constant() ? d.value() : it == dims.end() ? 1 : it->second);
    }
    if (element_count(std::span<const int64_t>(shape)) > int64_t{1} << 28) return std::nullopt;
    out.emplace_back(Tensor(Array::zeros(*input.type.dtype, shape)));
  }
  return out;
}

/// Floating-point operations of a run on zeros, or why they are unknown.
struct Flops {
  std::optional<double> value;
  std::string reason;
  std::vector<std::string> notes;
};

Flops count_flops(const std::string& path, const std::map<std::string, int64_t>& dims) {
  Session session(path);
  const auto inputs = zeros_for(session, dims);
  if (!inputs) return {{}, "the inputs have no declared shapes", {}};
  try {
    // An eager run on zeros may take arbitrarily long, so FLOPs are not counted there.
    if (!session.runs_as_plan(*inputs))
      return {{}, "--profile counts them in a run", session.fallbacks()};
    return {session.flops(*inputs), "", {}};
  } catch (const Error& e) {
    return {{}, e.message(), {}};
  }
}

/// Types of the outputs for inputs as declared, by tracing; empty if they are not known without
/// a run. Sizes that do not follow from the inputs are `?`.
std::vector<std::string> traced_output_types(const std::string& path) {
  try {
    const Session session(path);
    const std::vector<TensorType> types = session.opened().input_types();
    if (types.size() != session.inputs().size()) return {};
    const auto function = session.trace(types);
    std::vector<std::string> out;
    for (const ir::Value* result : function->body.results) out.push_back(result->type.text());
    return out;
  } catch (const Error&) {
    return {};  // the file may still run, node by node
  }
}

struct Summary {
  Model model;
  std::vector<std::pair<std::string, std::string>> inputs, outputs;  ///< names and types
  std::vector<std::pair<std::string, int64_t>> operators;            ///< by count, descending
  int64_t parameters = 0;
  uint64_t bytes = 0;  ///< of the initializers
  std::set<std::string> unknown;
};

Summary read_summary(const std::string& path) {
  Summary out;
  out.model = read_graph_file(path);
  const Model& model = out.model;
  std::set<std::string> given;
  for (const auto& t : model.graph.initializers) {
    given.insert(t.name);
    const int64_t count = element_count(std::span<const int64_t>(t.shape));
    if (t.dtype != DType::kString) out.bytes += storage_bytes(t.dtype, count);
    if (is_float(t.dtype)) out.parameters += count;
  }
  for (const auto& v : model.graph.inputs)
    if (!given.count(v.name)) out.inputs.emplace_back(v.name, v.type.text());
  for (const auto& v : model.graph.outputs) out.outputs.emplace_back(v.name, v.type.text());
  Census census;
  census.add(model, model.graph.nodes, model.opsets);
  for (const auto& f : model.functions)
    census.add(model, f.nodes, f.opsets.empty() ? model.opsets : f.opsets);
  out.operators.assign(census.counts.begin(), census.counts.end());
  std::stable_sort(out.operators.begin(), out.operators.end(),
                   [](const auto& a, const auto& b) { return a.second > b.second; });
  out.unknown = std::move(census.unknown);
  // Programs of PaddlePaddle declare no shapes of outputs that could be relied on.
  const auto has_shape = [](const auto& v) { return v.type.shape.has_value(); };
  if (out.unknown.empty() && !std::ranges::all_of(model.graph.outputs, has_shape)) {
    const std::vector<std::string> traced = traced_output_types(path);
    for (size_t i = 0; i < traced.size(); ++i)
      if (!has_shape(model.graph.outputs[i])) out.outputs[i].second = traced[i];
  }
  return out;
}

std::string flops_text(const std::string& path, const std::map<std::string, int64_t>& dims) {
  const Flops flops = count_flops(path, dims);
  if (!flops.value) {
    std::string out = "flops: unknown (" + flops.reason + ")\n";
    for (const std::string& line : flops.notes) out += "note: " + line + "\n";
    return out;
  }
  const double value = *flops.value;
  return str("flops: ", value < 0x1p63 ? str(static_cast<int64_t>(value)) : str(value),
             " (symbolic dims ", dims.empty() ? "are 1" : "as specified, else 1", ")\n");
}

}  // namespace

std::string summarize(const std::string& path, const std::map<std::string, int64_t>& dims) {
  const Summary summary = read_summary(path);
  const Model& model = summary.model;
  std::string out = str(path, "\n");
  if (!model.producer.empty()) out += "producer: " + printable(model.producer) + "\n";
  if (model.ir_version != 0) {
    out += str("ir version: ", model.ir_version, "\nopset:");
    for (const auto& [domain, version] : model.opsets)
      out += str(" ", domain.empty() ? "ai.onnx" : printable(domain), " ", version);
    out += "\n";
  }
  out += "inputs:\n";
  for (const auto& [name, type] : summary.inputs)
    out += str("  ", printable(name), ": ", printable(type), "\n");
  out += "outputs:\n";
  for (const auto& [name, type] : summary.outputs)
    out += str("  ", printable(name), ": ", printable(type), "\n");
  out += "operators:\n";
  for (const auto& [name, count] : summary.operators) out += str("  ", count, " ", name, "\n");
  out +=
      str("parameters: ", summary.parameters, "\ninitializers: ", model.graph.initializers.size(),
          ", ", human_bytes(summary.bytes), "\n");
  if (summary.unknown.empty()) {
    out += flops_text(path, dims) + "unsupported: nothing\n";
  } else {
    out += "unsupported:\n";
    for (const std::string& name : summary.unknown) out += "  " + name + "\n";
  }
  return out;
}

std::string summarize_json(const std::string& path, const std::map<std::string, int64_t>& dims) {
  const Summary summary = read_summary(path);
  const auto types = [](const std::vector<std::pair<std::string, std::string>>& values) {
    nlohmann::ordered_json out = nlohmann::ordered_json::object();
    for (const auto& [name, type] : values) out[name] = type;
    return out;
  };
  nlohmann::ordered_json opsets = nlohmann::ordered_json::object();
  for (const auto& [domain, version] : summary.model.opsets)
    opsets[domain.empty() ? "ai.onnx" : domain] = version;
  nlohmann::ordered_json out = {{"file", path},
                                {"producer", summary.model.producer},
                                {"ir_version", summary.model.ir_version},
                                {"opsets", opsets},
                                {"inputs", types(summary.inputs)},
                                {"outputs", types(summary.outputs)}};
  out["operators"] = nlohmann::ordered_json::object();
  for (const auto& [name, count] : summary.operators) out["operators"][name] = count;
  out["parameters"] = summary.parameters;
  out["initializers"] = summary.model.graph.initializers.size();
  out["bytes"] = summary.bytes;
  out["unsupported"] = summary.unknown;
  const std::optional<double> flops =
      summary.unknown.empty() ? count_flops(path, dims).value : std::nullopt;
  out["flops"] = flops ? nlohmann::ordered_json(*flops) : nlohmann::ordered_json();
  return out.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

}  // namespace paddle::onnx
