// cf.if and cf.while as If and Loop.

#include "onnx/export/graph_writer.h"

namespace paddle::onnx {
namespace {

using Writer = GraphWriter;
using formats::onnx::Attribute;
using formats::onnx::AttributeKind;
using formats::onnx::Graph;
using formats::onnx::ValueInfo;
using formats::onnx::ValueType;

Attribute graph_attribute(std::string name, std::shared_ptr<Graph> graph) {
  Attribute out;
  out.name = std::move(name);
  out.kind = AttributeKind::kGraph;
  out.graphs = {std::move(graph)};
  return out;
}

/// Sizes that are not constant may differ between iterations.
ValueInfo info_of(std::string name, const TensorType& type) {
  ValueInfo out;
  out.name = std::move(name);
  out.type.kind = ValueType::Kind::kTensor;
  out.type.dtype = type.dtype;
  Shape shape;
  for (const Dim& dim : type.shape) shape.push_back(dim.is_constant() ? dim : Dim::unknown());
  out.type.shape = std::move(shape);
  return out;
}

void branch(Writer& w) {
  const ir::Operation& operation = w.operation();
  const auto side = [&](size_t region, const char* name) {
    auto graph =
        w.subgraph(name, {}, [&] { return w.inline_region(*operation.regions[region], {}); });
    for (size_t i = 0; i < graph->outputs.size(); ++i)
      graph->outputs[i] = info_of(graph->outputs[i].name, operation.results[i]->type);
    return graph;
  };
  const std::string condition = w.name_of(*operation.operands[0]);
  ExportAttributes attributes = {graph_attribute("then_branch", side(0, "then")),
                                 graph_attribute("else_branch", side(1, "else"))};
  const Names out =
      w.add_several("If", {condition}, operation.results.size(), std::move(attributes));
  for (size_t i = 0; i < out.size(); ++i) w.result(i, out[i]);
}

/// While condition(carried): carried = body(carried). Loop asks for the next condition at the end
/// of an iteration, so the condition is written twice.
void loop(Writer& w) {
  const ir::Operation& operation = w.operation();
  const ir::Region &condition = *operation.regions[0], &body = *operation.regions[1];
  Names carried;
  for (const ir::Value* value : operation.operands) carried.push_back(w.name_of(*value));
  const std::string first = w.inline_region(condition, carried).at(0);
  const int64_t most = operation.attrs[0].as_int();
  std::vector<ValueInfo> inputs = {info_of(w.fresh("iteration"), {DType::kI64, {}}),
                                   info_of(w.fresh("holds"), {DType::kBool, {}})};
  Names arguments;
  for (const ir::Value* value : operation.operands) {
    arguments.push_back(w.fresh("carried"));
    inputs.push_back(info_of(arguments.back(), value->type));
  }
  auto graph = w.subgraph("body", inputs, [&] {
    const Names next = w.inline_region(body, arguments);
    Names out = {w.inline_region(condition, next).at(0)};
    out.insert(out.end(), next.begin(), next.end());
    return out;
  });
  for (size_t i = 0; i < graph->outputs.size(); ++i)
    graph->outputs[i] = info_of(graph->outputs[i].name, i == 0 ? TensorType{DType::kBool, {}}
                                                               : operation.results[i - 1]->type);
  Names operands = {most >= 0 ? w.constant(Array::scalar(most)) : "", first};
  operands.insert(operands.end(), carried.begin(), carried.end());
  const Names out = w.add_several("Loop", operands, operation.results.size(),
                                  {graph_attribute("body", std::move(graph))});
  for (size_t i = 0; i < out.size(); ++i) w.result(i, out[i]);
}

}  // namespace

std::vector<ExportRuleEntry> control_flow_export_rules() {
  return {{"cf.if", branch}, {"cf.while", loop}};
}

}  // namespace paddle::onnx
