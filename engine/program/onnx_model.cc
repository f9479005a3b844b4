#include "program/onnx_model.h"

#include "base/files.h"
#include "onnx/graph/value_io.h"
#include "paddle_program/register.h"

namespace paddle::program {

OnnxModel::OnnxModel(const std::string& path, const LoadOptions& options) {
  paddle_program::register_programs();
  if (!file_exists(path)) fail(ErrorCode::kUsage, path, ": no such file");
  if (!options.overrides.empty() || !options.weights.empty() || options.function != "model")
    fail(ErrorCode::kUsage, "params, --weights and --function are for model files in YAML; ", path,
         " has its own weights and one graph");
  if (options.precision != DType::kF32)
    fail(ErrorCode::kUsage, "a precision of ", text(options.precision),
         " is for model files and trained models; ", path,
         " computes in the types of its graph (paddle-export --dtype converts them)");
  session_ = std::make_unique<onnx::Session>(
      path, onnx::SessionOptions{.profile = options.profile,
                                 .compile = options.compile,
                                 .observe = options.observe,
                                 .provided_inputs = options.provided});
  session_->set_seed(options.seed);
  name_ = session_->model().graph.name;
  const auto shapes = session_->opened().input_shapes();
  for (size_t i = 0; i < shapes.size(); ++i) {
    const auto& input = session_->inputs()[i];
    TensorType type{input.type.dtype.value_or(DType::kF32), shapes[i].value_or(Shape())};
    type.ranked = shapes[i].has_value();
    inputs_.emplace_back(input.name, type);
  }
  for (const auto& output : session_->outputs()) {
    outputs_.push_back(output.name);
    TensorType type{output.type.dtype.value_or(DType::kF32), output.type.shape.value_or(Shape())};
    type.ranked = output.type.shape.has_value();
    declared_outputs_.emplace_back(output.name, type);
  }
}

OnnxModel::OnnxModel(const OnnxModel& other) : Model(other), session_(other.session_->clone()) {}

std::unique_ptr<Model> OnnxModel::clone() const {
  return std::unique_ptr<Model>(new OnnxModel(*this));
}

const std::vector<Array>& OnnxModel::run(const std::vector<Array>& inputs) {
  const auto arrays = onnx::plain_arrays(*session_, session_->run(onnx::to_values(inputs)));
  results_.clear();
  outputs_.clear();
  for (const auto& [name, array] : arrays) {
    outputs_.push_back(name);
    results_.push_back(array);
  }
  return results_;
}

double OnnxModel::flops(const std::vector<Array>& inputs) {
  return session_->flops(onnx::to_values(inputs));
}

}  // namespace paddle::program
