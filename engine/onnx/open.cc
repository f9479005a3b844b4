#include "onnx/open.h"

#include <set>

#include "onnx/check.h"

namespace paddle::onnx {

using formats::onnx::ValueInfo;
using formats::onnx::ValueType;

OpenModel open_model(const std::string& path) {
  OpenModel out;
  out.model = std::make_shared<const formats::onnx::Model>(formats::onnx::read_model(path));
  const formats::onnx::Graph& graph = out.model->graph;
  std::set<std::string> given, names;
  for (const auto& t : graph.initializers) given.insert(t.name);
  for (const auto& s : graph.sparse_initializers) given.insert(s.first);
  for (size_t i = 0; i < graph.inputs.size(); ++i) {
    const ValueInfo& input = graph.inputs[i];
    if (!names.insert(input.name).second)
      fail(ErrorCode::kModel, path, ": two inputs are called '", input.name, "'");
    if (given.count(input.name)) continue;
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

std::vector<TensorType> OpenModel::input_types() const {
  std::vector<TensorType> types;
  int unnamed = 0;
  for (const ValueInfo& input : inputs) {
    if (input.type.kind != ValueType::Kind::kTensor || !input.type.dtype || !input.type.shape ||
        *input.type.dtype == DType::kString)
      return {};
    TensorType type{*input.type.dtype, *input.type.shape};
    for (Dim& d : type.shape)
      if (d.is_unknown()) d = Dim::symbol(str("unnamed", unnamed++));
    types.push_back(type);
  }
  return types;
}

}  // namespace paddle::onnx
