#include "onnx/graph/summary.h"

#include <algorithm>
#include <set>

#include "onnx/graph/session.h"
#include "onnx/operator_registry.h"
#include "onnx/paddle/import.h"

namespace paddle::onnx {
namespace {

using formats::onnx::Model;
using formats::onnx::Node;
using formats::onnx::ValueType;

std::string type_name(const Node& node) {
  return printable(node.domain.empty() ? node.op_type : node.domain + "." + node.op_type);
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

std::string flops_text(const std::string& path, const std::map<std::string, int64_t>& dims) {
  Session session(path);
  const auto inputs = zeros_for(session, dims);
  if (!inputs) return "flops: unknown (the inputs have no declared shapes)\n";
  double flops = 0;
  try {
    // An eager run on zeros may take arbitrarily long, so FLOPs are not counted there.
    if (!session.runs_as_plan(*inputs)) {
      std::string out = "flops: unknown (--profile counts them in a run)\n";
      for (const std::string& line : session.fallbacks()) out += "note: " + line + "\n";
      return out;
    }
    flops = session.flops(*inputs);
  } catch (const Error& e) {
    return str("flops: unknown (", e.message(), ")\n");
  }
  return str("flops: ", flops < 0x1p63 ? str(static_cast<int64_t>(flops)) : str(flops),
             " (symbolic dims ", dims.empty() ? "are 1" : "as specified, else 1", ")\n");
}

}  // namespace

std::string summarize(const std::string& path, const std::map<std::string, int64_t>& dims) {
  const Model model = read_graph_file(path);
  std::string out = str(path, "\n");
  if (!model.producer.empty()) out += "producer: " + printable(model.producer) + "\n";
  out += str("ir version: ", model.ir_version, "\nopset:");
  for (const auto& [domain, version] : model.opsets)
    out += str(" ", domain.empty() ? "ai.onnx" : printable(domain), " ", version);
  out += "\n";
  std::set<std::string> given;
  int64_t parameters = 0, bytes = 0;
  for (const auto& t : model.graph.initializers) {
    given.insert(t.name);
    const int64_t count = element_count(std::span<const int64_t>(t.shape));
    if (t.dtype != DType::kString) bytes += storage_bytes(t.dtype, count);
    if (is_float(t.dtype)) parameters += count;
  }
  out += "inputs:\n";
  for (const auto& v : model.graph.inputs)
    if (!given.count(v.name))
      out += str("  ", printable(v.name), ": ", printable(v.type.text()), "\n");
  out += "outputs:\n";
  for (const auto& v : model.graph.outputs)
    out += str("  ", printable(v.name), ": ", printable(v.type.text()), "\n");
  Census census;
  census.add(model, model.graph.nodes, model.opsets);
  for (const auto& f : model.functions)
    census.add(model, f.nodes, f.opsets.empty() ? model.opsets : f.opsets);
  std::vector<std::pair<std::string, int64_t>> counts(census.counts.begin(), census.counts.end());
  std::stable_sort(counts.begin(), counts.end(),
                   [](const auto& a, const auto& b) { return a.second > b.second; });
  out += "operators:\n";
  for (const auto& [name, count] : counts) out += str("  ", count, " ", name, "\n");
  out += str("parameters: ", parameters, "\ninitializers: ", model.graph.initializers.size(), ", ",
             human_bytes(static_cast<uint64_t>(bytes)), "\n");
  if (census.unknown.empty()) {
    out += flops_text(path, dims) + "unsupported: nothing\n";
  } else {
    out += "unsupported:\n";
    for (const std::string& name : census.unknown) out += "  " + name + "\n";
  }
  return out;
}

}  // namespace paddle::onnx
