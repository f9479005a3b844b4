#include "exporter/bisect.h"

#include <set>

#include "exporter/check.h"
#include "formats/onnx/write.h"
#include "ir/replay.h"
#include "ops/core/call.h"
#include "ops/generated/math.h"
#include "program/model.h"
#include "runtime/execute.h"

namespace paddle::exporter {
namespace {

using Outputs = std::vector<std::pair<const ir::Value*, std::string>>;

/// The values of the function that nodes of the file compute, each name once.
Outputs values_of_nodes(const onnx::ExportedModel& exported) {
  std::set<std::string> computed;
  for (const auto& node : exported.model.graph.nodes)
    computed.insert(node.outputs.begin(), node.outputs.end());
  Outputs out;
  for (const auto& [value, name] : exported.values)
    if (!name.empty() && computed.erase(name) > 0) out.emplace_back(value, name);
  return out;
}

/// Computes a function of 16-bit types in float32: casts to that type do nothing.
class Widened final : public ForwardingInterpreter {
 public:
  explicit Widened(DType low) : low_(low) {}

  Tensors apply(const OpCall& call) override {
    const ScopedInterpreter below(next());
    if (call.op.name() == "cast" && !call.results.empty() && call.results[0].dtype == low_ &&
        is_float(call.operands[0].dtype()))
      return {call.operands[0].dtype() == low_ ? ops::cast(call.operands[0], DType::kF32)
                                               : call.operands[0]};
    // Types of results follow from the wider operands.
    return paddle::call(call.op, call.operands, call.attrs);
  }

 private:
  DType low_;
};

/// Every value of the function.
ir::ValueMap evaluated(const ir::Function& function, const onnx::WeightLookup& weights,
                       const std::map<std::string, Array>& inputs, std::optional<DType> low) {
  runtime::EagerExecutor eager;
  const InterpreterScope scope(eager);
  std::optional<Widened> widened;
  std::optional<InterpreterScope> above;
  if (low) above.emplace(widened.emplace(*low));
  ir::ValueMap values;
  for (size_t i = 0; i < function.inputs.size(); ++i) {
    const ir::Port& port = function.inputs[i];
    const Array array = port.kind == ir::PortKind::kRandom  ? Array::zeros(DType::kU64, {2})
                        : port.kind == ir::PortKind::kValue ? inputs.at(port.name)
                                                            : weights(port.name);
    values[function.body.arguments[i]] = Tensor(array);
  }
  ir::replay(function.body, values);
  return values;
}

const formats::onnx::Node* producer_of(const formats::onnx::Graph& graph, const std::string& name) {
  for (const auto& node : graph.nodes)
    for (const std::string& output : node.outputs)
      if (output == name) return &node;
  return nullptr;
}

class ScratchFile {
 public:
  explicit ScratchFile(std::string path) : path_(std::move(path)) {}
  ~ScratchFile() { remove_model(path_); }
  ScratchFile(const ScratchFile&) = delete;
  ScratchFile& operator=(const ScratchFile&) = delete;
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

}  // namespace

std::string NodeDifference::text() const {
  return str("first difference at ", op_type, " '", node, "'", source.empty() ? "" : " (", source,
             source.empty() ? "" : ")", ": '", value, "': ", difference);
}

std::optional<NodeDifference> first_difference(const onnx::ExportedModel& exported,
                                               const onnx::WeightLookup& weights,
                                               const std::map<std::string, Array>& inputs,
                                               const ToleranceFor& tolerance, const OpenFile& open,
                                               const std::string& scratch,
                                               std::optional<DType> low) {
  const ir::Function& function = *exported.function;
  const Outputs wanted = values_of_nodes(exported);
  formats::onnx::Model model = exported.model;
  model.graph.outputs.clear();
  for (const auto& [value, name] : wanted) {
    formats::onnx::ValueInfo& output = model.graph.outputs.emplace_back();
    output.name = name;
    output.type.kind = formats::onnx::ValueType::Kind::kTensor;
    output.type.dtype = value->type.dtype;
  }
  const ScratchFile file(scratch);
  const formats::onnx::ModelFile written{&model, file.path(), exported.weights};
  formats::onnx::WriteOptions options;
  options.weight = exported.weight;
  formats::onnx::write_models({&written, 1}, file.path() + ".data", options);
  const auto loaded = open(file.path());
  std::vector<Array> given;
  for (const auto& [name, type] : loaded->inputs()) {
    const auto state = exported.states.find(name);
    given.push_back(state == exported.states.end() ? inputs.at(name) : weights(state->second));
  }
  const auto& found = loaded->run(given);
  const ir::ValueMap expected = evaluated(function, weights, inputs, low);
  for (size_t i = 0; i < wanted.size(); ++i) {
    const auto& [value, name] = wanted[i];
    const Array array = expected.at(value).array();
    const Array made = low && is_float(array.dtype) ? found.at(i).cast(array.dtype) : found.at(i);
    const std::string difference = inspect::difference(made, array, tolerance(array));
    if (difference.empty()) continue;
    const formats::onnx::Node* node = producer_of(exported.model.graph, name);
    return NodeDifference{node->name, node->op_type, node->source, name, difference};
  }
  return std::nullopt;
}

}  // namespace paddle::exporter
