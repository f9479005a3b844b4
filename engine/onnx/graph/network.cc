#include "onnx/graph/network.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>

#include "onnx/graph/constant_folding.h"
#include "onnx/graph/graph_format.h"

namespace paddle::onnx {
namespace {

using formats::onnx::Graph;
using formats::onnx::Node;

using Use = InputUse;

Use use_of(const Node& node, size_t input) {
  if (const GraphFormat* format = added_format(node.domain)) return format->use_of(node, input);
  const std::string& type = node.op_type;
  if (type == "BatchNormalization" && input >= 3) return Use::kStatistic;
  // First input of each operator that configures it.
  static const std::map<std::string, size_t> kFirstConfiguration = {{"Clip", 1},
                                                                    {"DequantizeLinear", 1},
                                                                    {"Dropout", 1},
                                                                    {"MaxUnpool", 2},
                                                                    {"NonMaxSuppression", 0},
                                                                    {"OneHot", 0},
                                                                    {"Pad", 1},
                                                                    {"QLinearConv", 0},
                                                                    {"QLinearMatMul", 0},
                                                                    {"QuantizeLinear", 1},
                                                                    {"Range", 0},
                                                                    {"Resize", 1},
                                                                    {"RoiAlign", 1},
                                                                    {"Upsample", 1}};
  const auto it = kFirstConfiguration.find(type);
  return it != kFirstConfiguration.end() && input >= it->second ? Use::kConfiguration
                                                                : Use::kWeight;
}

/// Collects the uses of names; whatever a subgraph reads counts as configuration.
void add_uses(const std::vector<Node>& nodes, bool inner, std::map<std::string, Use>& uses) {
  for (const Node& node : nodes) {
    for (size_t i = 0; i < node.inputs.size(); ++i) {
      const Use use = inner ? Use::kConfiguration : use_of(node, i);
      const auto [it, first] = uses.emplace(node.inputs[i], use);
      if (!first && it->second != use) it->second = Use::kConfiguration;
    }
    for (const auto& attribute : node.attributes)
      for (const auto& graph : attribute.graphs) add_uses(graph->nodes, true, uses);
  }
}

void to_float64(formats::onnx::TensorData& data) {
  if (data.dtype != DType::kF32) return;
  const Array narrow = data.array.contiguous();
  data.dtype = DType::kF64;
  data.array = Array::empty(DType::kF64, narrow.shape);
  std::copy_n(narrow.data<const float>(), narrow.size(), data.array.data<double>());
}

void to_float64(Graph& graph);

void to_float64(std::vector<Node>& nodes) {
  constexpr int64_t kFloat = 1, kDouble = 11;  // TensorProto.DataType
  for (Node& node : nodes) {
    if (const GraphFormat* format = added_format(node.domain)) {
      format->widen(node);
      for (auto& attribute : node.attributes)
        for (auto& graph : attribute.graphs) to_float64(*graph);
      continue;
    }
    for (auto& attribute : node.attributes) {
      for (auto& tensor : attribute.tensors) to_float64(tensor);
      for (auto& graph : attribute.graphs) to_float64(*graph);
      const bool type =
          attribute.name == "to" || attribute.name == "dtype" || attribute.name == "stash_type";
      if (type && attribute.i == kFloat) attribute.i = kDouble;
      if (node.op_type == "Constant" && attribute.name.starts_with("value_float")) {
        const bool scalar = attribute.name == "value_float";
        formats::onnx::TensorData data;
        data.array = scalar
                         ? Array::from<double>({attribute.f}, {})
                         : Array::from<double>({attribute.floats.begin(), attribute.floats.end()},
                                               {static_cast<int64_t>(attribute.floats.size())});
        data.dtype = DType::kF64;
        data.shape = data.array.shape;
        attribute.name = "value";
        attribute.kind = formats::onnx::AttributeKind::kTensor;
        attribute.tensors = {data};
      }
    }
  }
}

void to_float64(Graph& graph) {
  for (auto& data : graph.initializers) to_float64(data);
  for (auto* values : {&graph.inputs, &graph.outputs, &graph.values})
    for (auto& value : *values)
      if (value.type.dtype == DType::kF32) value.type.dtype = DType::kF64;
  to_float64(graph.nodes);
}

}  // namespace

Network::Network(const std::string& path, const std::set<std::string>& outputs, bool use_float64)
    : opened_(open_model(path, {}, outputs)) {
  if (use_float64) {
    auto model = std::make_shared<formats::onnx::Model>(*opened_.model);
    to_float64(model->graph);
    for (auto& function : model->functions) to_float64(function.nodes);
    for (auto& input : opened_.inputs)
      if (input.type.dtype == DType::kF32) input.type.dtype = DType::kF64;
    opened_.model = model;
  }
  const Graph& graph = opened_.model->graph;
  if (opened_.input_types().size() != opened_.inputs.size())
    fail(ErrorCode::kModel, path,
         ": only models whose inputs are tensors of declared type and rank can be trained");
  std::map<std::string, Use> uses;
  add_uses(graph.nodes, false, uses);
  for (const auto& output : graph.outputs) uses[output.name] = Use::kConfiguration;
  for (const auto& data : graph.initializers) {
    const auto use = uses.find(data.name);
    if (!is_float(data.dtype) || !info(data.dtype).has_kernels || data.shape.empty() ||
        use == uses.end() || use->second == Use::kConfiguration)
      continue;
    weights_.push_back({&data, use->second == Use::kWeight});
  }
}

Tensors Network::run(const Tensors& inputs, const std::function<Tensor(const Weight&)>& value,
                     const Mode& mode, const Observer& observe) const {
  Values given;
  for (const Tensor& t : inputs) given.emplace_back(t);
  std::map<std::string, Value> values;
  std::map<std::string, const Weight*> by_name;
  for (const Weight& weight : weights_) {
    values.emplace(weight.name(), Value(value(weight)));
    by_name.emplace(weight.name(), &weight);
  }
  const auto weight_of = [&](const std::string& name) {
    const auto it = by_name.find(name);
    return it == by_name.end() ? nullptr : it->second;
  };
  const auto is_training = [&](const Node& node) {
    if (!mode.training) return false;
    if (node.op_type != "BatchNormalization") return true;
    // Frozen if its scale and bias are.
    return !std::all_of(node.inputs.begin() + 1, node.inputs.begin() + 3, [&](const auto& name) {
      const Weight* weight = weight_of(name);
      return !weight || mode.frozen(*weight);
    });
  };
  Evaluator evaluator(*opened_.model);
  evaluator.set_training_mode(is_training);
  evaluator.observe([&](const Node& node, const Values& taken, const Values& outputs) {
    if (node.op_type == "BatchNormalization" && outputs.size() > 2 && is_training(node))
      for (const size_t i : {size_t{3}, size_t{4}})
        if (const Weight* weight = weight_of(node.inputs[i]); weight && !weight->trainable)
          mode.update(*weight, outputs[i - 2].tensor());
    if (!observe) return;
    std::vector<const Weight*> read;
    for (const std::string& name : node.inputs)
      if (const Weight* weight = weight_of(name)) read.push_back(weight);
    if (!read.empty()) observe(node, read, taken, outputs);
  });
  std::optional<ConstantFolder> folder;
  std::optional<InterpreterScope> scope;
  if (current_interpreter().traces()) scope.emplace(folder.emplace());
  const Values results = evaluator.run(opened_.arguments(given), values);
  Tensors out;
  for (size_t i = 0; i < results.size(); ++i) {
    if (!results[i].is_tensor())
      fail(ErrorCode::kModel, "the output '", opened_.model->graph.outputs[i].name, "' is ",
           results[i].text(), "; only tensors can be trained on");
    out.push_back(results[i].tensor());
  }
  return out;
}

}  // namespace paddle::onnx
