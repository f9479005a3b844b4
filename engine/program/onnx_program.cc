#include "program/onnx_program.h"

#include <algorithm>
#include <filesystem>
#include <set>

#include "lang/eval/evaluator.h"
#include "onnx/graph/network.h"
#include "paddle_program/register.h"
#include "runtime/execute.h"

namespace paddle::program {
namespace {

/// The network as an entry: weights come from the store, statistics are states.
class NetworkEntry final : public lang::ExternalEntry {
 public:
  NetworkEntry(const std::string& path, std::set<std::string> outputs)
      : file_(std::make_shared<const std::string>(path)),
        outputs_(std::move(outputs)),
        network_(path, outputs_) {}

  Tensors run(const Tensors& inputs, lang::ParameterProvider& store, bool training,
              const std::function<void(const lang::CallRecord&)>& observer) const override {
    const bool use_float64 = store.stored_dtype(DType::kF32) == DType::kF64;
    if (use_float64 && !float64_network_)
      float64_network_ = std::make_unique<onnx::Network>(*file_, outputs_, true);
    const auto value = [&](const onnx::Weight& weight) {
      lang::Initializer init;
      init.kind = lang::Initializer::Kind::kArray;
      init.array = weight.data->array;
      const DType dtype = weight.data->dtype;
      return weight.trainable ? store.parameter(weight.name(), weight.data->shape, dtype, init)
                              : store.state(weight.name(), weight.data->shape, dtype, init,
                                            lang::StateScope::kModel);
    };
    onnx::Network::Observer watch;
    if (observer)
      watch = [&](const formats::onnx::Node& node, const std::vector<const onnx::Weight*>& weights,
                  const onnx::Values& taken, const onnx::Values& given) {
        lang::CallRecord record;
        record.path = node.name.empty() && !node.outputs.empty() ? node.outputs[0] : node.name;
        record.callee = node.op_type;
        record.where.file = file_;
        for (const onnx::Value& v : taken)
          if (v.is_tensor()) record.inputs.push_back(v.tensor().type());
        for (const onnx::Value& v : given)
          if (v.is_tensor()) record.outputs.push_back(v.tensor().type());
        for (const onnx::Weight* w : weights)
          if (w->trainable)
            record.parameters.push_back(
                {w->name(), TensorType{w->data->dtype, to_shape(w->data->shape)}});
        observer(record);
      };
    const onnx::Network::Mode mode = {
        .training = training,
        .frozen = [&](const onnx::Weight& weight) { return store.is_frozen(weight.name()); },
        .update = [&](const onnx::Weight& weight,
                      const Tensor& next) { store.update(weight.name(), next); }};
    return (use_float64 ? *float64_network_ : network_).run(inputs, value, mode, watch);
  }

  const onnx::Network& network() const { return network_; }

 private:
  std::shared_ptr<const std::string> file_;
  std::set<std::string> outputs_;  ///< those that the config names
  onnx::Network network_;
  mutable std::unique_ptr<onnx::Network>
      float64_network_;  ///< for runs in float64, made when needed
};

/// The program's names for these names of the file, in the file's order.
std::vector<std::string> names_of(const std::vector<formats::onnx::ValueInfo>& values,
                                  const std::map<std::string, std::string>& given,
                                  const std::string& path, const char* what) {
  std::vector<std::string> known, out;
  for (const auto& value : values) known.push_back(value.name);
  for (const auto& [name, in_file] : given)
    if (std::find(known.begin(), known.end(), in_file) == known.end())
      fail(ErrorCode::kConfig, path, ": has no ", what, " '", in_file, "'",
           did_you_mean(in_file, known));
  std::set<std::string> taken;
  for (const std::string& in_file : known) {
    const auto it = std::find_if(given.begin(), given.end(),
                                 [&](const auto& entry) { return entry.second == in_file; });
    out.push_back(it == given.end() ? formats::onnx::symbol_of(in_file) : it->first);
    if (!taken.insert(out.back()).second)
      fail(ErrorCode::kConfig, path, ": two ", what, "s would be called '", out.back(),
           "'; give one of them another name");
  }
  return out;
}

lang::ExprPtr size_expression(const Dim& dim, const config::SourcePosition& where) {
  auto out = std::make_unique<lang::Expr>();
  out->where = where;
  if (dim.is_constant()) {
    out->kind = lang::ExprKind::kInteger;
    out->integer = dim.value();
  } else {
    out->kind = lang::ExprKind::kName;
    out->text = dim.text();
  }
  return out;
}

}  // namespace

std::shared_ptr<const lang::Program> read_onnx_program(const std::string& path,
                                                       const OnnxNames& names) {
  runtime::register_backends();
  paddle_program::register_programs();
  std::set<std::string> outputs;
  for (const auto& [name, in_file] : names.outputs) outputs.insert(in_file);
  const auto entry = std::make_shared<const NetworkEntry>(path, std::move(outputs));
  const onnx::OpenModel& opened = entry->network().opened();
  const auto program = std::make_shared<lang::Program>();
  program->name = std::filesystem::path(path).stem().string();
  program->file = path;
  config::SourcePosition where;
  where.file = std::make_shared<const std::string>(path);
  program->model.name = "model";
  program->model.where = program->model.code.where = where;
  program->model.external = entry;
  const auto inputs = names_of(opened.inputs, names.inputs, path, "input");
  const auto types = opened.input_types();
  for (size_t i = 0; i < inputs.size(); ++i) {
    lang::Input input;
    input.name = {inputs[i], where};
    input.dtype = types[i].dtype;
    for (const Dim& d : types[i].shape) {
      input.shape.push_back(size_expression(d, where));
      if (!d.is_constant() && !program->is_dim(d.text())) program->dims.push_back(d.text());
    }
    program->model.inputs.push_back(std::move(input));
  }
  for (const std::string& name :
       names_of(opened.model->graph.outputs, names.outputs, path, "output"))
    program->model.outputs.push_back({name, where});
  return program;
}

}  // namespace paddle::program
