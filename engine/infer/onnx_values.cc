#include "infer/onnx_values.h"

#include "base/files.h"
#include "infer/predictor.h"
#include "ops/operators.h"
#include "runtime/execute.h"

namespace paddle::infer {

using onnx::Value;
using onnx::Values;

Values onnx_values(const std::vector<Array>& arrays) {
  Values out;
  for (const Array& a : arrays) out.emplace_back(Tensor(a));
  return out;
}

bool has_onnx_inputs(const std::string& folder) {
  if (!is_directory(folder)) return false;
  for (const std::string& name : list_directory(folder))
    if (name.ends_with(".pb")) return true;
  return false;
}

Values read_onnx_inputs(const onnx::Session& model, const std::string& folder) {
  Values out;
  for (size_t i = 0; i < model.inputs().size(); ++i) {
    const auto& input = model.inputs()[i];
    std::string path = str(folder, "/input_", i, ".pb");
    if (!file_exists(path) && input.name.find('/') == std::string::npos)
      path = folder + "/" + input.name + ".pb";
    if (file_exists(path)) {
      out.push_back(Value::of(formats::onnx::read_value(path, input.type)));
      continue;
    }
    if (input.type.kind != formats::onnx::ValueType::Kind::kOptional)
      fail(ErrorCode::kData, folder, ": has no input_", i, ".pb; the model takes '", input.name,
           "' ", input.type);
    out.emplace_back();
  }
  return out;
}

bool needs_cast(DType given, DType wanted) {
  if (wanted == DType::kBF16) return given == DType::kF32;
  if (info(wanted).has_kernels || is_complex(wanted) || wanted == DType::kString) return false;
  if (is_float(wanted)) return given == DType::kF32;
  return given == (info(wanted).kind == DTypeKind::kSigned ? DType::kI8 : DType::kU8);
}

Array cast_array(const Array& array, DType to) {
  runtime::EagerExecutor eager;
  const InterpreterScope scope(eager);
  return ops::cast(Tensor(array), to).array();
}

namespace {

void add_arrays(formats::NamedArrays& out, const std::string& name, const Value& value) {
  switch (value.kind()) {
    case Value::Kind::kTensor: {
      const Array a = value.tensor().array();
      if (info(a.dtype).has_kernels || is_complex(a.dtype))
        out.emplace_back(name, a);
      else
        out.emplace_back(name,
                         cast_array(a, is_float(a.dtype)                          ? DType::kF32
                                       : info(a.dtype).kind == DTypeKind::kSigned ? DType::kI8
                                                                                  : DType::kU8));
      return;
    }
    case Value::Kind::kStrings:
      fail(ErrorCode::kData, "the output '", name, "' holds strings, which arrays cannot");
    case Value::Kind::kNone:
      return;
    case Value::Kind::kOptional:
      if (!value.elements().empty()) add_arrays(out, name, value.elements()[0]);
      return;
    case Value::Kind::kSequence:
      for (size_t i = 0; i < value.elements().size(); ++i)
        add_arrays(out, str(name, ".", i), value.elements()[i]);
  }
}

}  // namespace

formats::NamedArrays onnx_arrays(const onnx::Session& model, const Values& outputs) {
  formats::NamedArrays out;
  for (size_t i = 0; i < outputs.size(); ++i) add_arrays(out, model.outputs()[i].name, outputs[i]);
  return out;
}

void Predictor::open_onnx(const std::string& path, const LoadOptions& options) {
  if (!file_exists(path)) fail(ErrorCode::kUsage, path, ": there is no such file");
  if (!options.overrides.empty() || !options.weights.empty() || options.function != "model")
    fail(ErrorCode::kUsage, "params, --weights and --function belong to model files in YAML; ",
         path, " has its own weights and one graph");
  onnx_ = std::make_unique<onnx::Session>(
      path, onnx::SessionOptions{onnx::Mode::kAutomatic, options.profile});
  onnx_->set_seed(options.seed);
  name_ = onnx_->model().graph.name;
  int unnamed = 0;
  for (const auto& input : onnx_->inputs()) {
    TensorType type{input.type.dtype.value_or(DType::kF32), input.type.shape.value_or(Shape())};
    type.ranked = input.type.shape.has_value();
    for (Dim& d : type.shape)
      if (d.is_unknown()) d = Dim::symbol(str("unnamed", unnamed++));
    inputs_.emplace_back(input.name, type);
  }
  for (const auto& output : onnx_->outputs()) outputs_.push_back(output.name);
}

std::vector<Array> Predictor::run_onnx(const std::vector<Array>& inputs) {
  const auto arrays = onnx_arrays(*onnx_, onnx_->run(onnx_values(inputs)));
  std::vector<Array> out;
  outputs_.clear();
  for (const auto& [name, array] : arrays) {
    outputs_.push_back(name);
    out.push_back(array);
  }
  return out;
}

}  // namespace paddle::infer
