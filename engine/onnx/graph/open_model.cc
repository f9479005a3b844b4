#include "onnx/graph/open_model.h"

#include "onnx/graph/check_model.h"
#include "onnx/graph/graph_format.h"
#include "onnx/graph/select_outputs.h"

namespace paddle::onnx {

using formats::onnx::ValueInfo;
using formats::onnx::ValueType;

OpenModel open_model(const std::string& path, const std::set<std::string>& given,
                     const std::set<std::string>& outputs) {
  OpenModel out;
  formats::onnx::Model model = read_graph_file(path);
  select_outputs(model.graph, outputs);
  out.model = std::make_shared<const formats::onnx::Model>(std::move(model));
  const formats::onnx::Graph& graph = out.model->graph;
  std::set<std::string> known, names;
  for (const auto& t : graph.initializers) known.insert(t.name);
  for (const auto& s : graph.sparse_initializers) known.insert(s.first);
  for (size_t i = 0; i < graph.inputs.size(); ++i) {
    const ValueInfo& input = graph.inputs[i];
    if (!names.insert(input.name).second)
      fail(ErrorCode::kModel, path, ": two inputs are called '", input.name, "'");
    if (known.count(input.name) && !given.count(input.name)) continue;
    out.inputs.push_back(input);
    out.positions.push_back(i);
  }
  try {
    check_model(*out.model);
  } catch (const Error& e) {
    fail(e.code(), path, ": ", e.message());
  }
  return out;
}

Values OpenModel::arguments(const Values& given) const {
  Values all(model->graph.inputs.size());
  for (size_t i = 0; i < given.size(); ++i) all[positions[i]] = given[i];
  return all;
}

std::vector<std::optional<Shape>> OpenModel::input_shapes() const {
  std::vector<std::optional<Shape>> shapes;
  int unnamed = 0;
  for (const ValueInfo& input : inputs) {
    shapes.push_back(input.type.shape);
    if (!shapes.back()) continue;
    for (Dim& d : *shapes.back())
      if (d.is_unknown()) d = Dim::symbol(str("unnamed", unnamed++));
  }
  return shapes;
}

std::vector<TensorType> OpenModel::input_types() const {
  std::vector<TensorType> types;
  const auto shapes = input_shapes();
  for (size_t i = 0; i < inputs.size(); ++i) {
    const ValueType& type = inputs[i].type;
    if (type.kind != ValueType::Kind::kTensor || !type.dtype || !shapes[i] ||
        *type.dtype == DType::kString)
      return {};
    types.push_back({*type.dtype, *shapes[i]});
  }
  return types;
}

}  // namespace paddle::onnx
