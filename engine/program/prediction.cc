#include "program/prediction.h"

#include <optional>
#include <set>

#include "autograd/autograd.h"
#include "lang/eval/evaluator.h"
#include "ops/core/call.h"
#include "program/parameter_binding.h"
#include "runtime/compile.h"
#include "runtime/execute.h"

namespace paddle::program {

std::shared_ptr<ir::Function> trace_prediction(const lang::Program& program,
                                               const lang::EntryPoint& entry, ParameterStore& store,
                                               bool use_float64, StaticDims* dims,
                                               const quant::FakeQuantization* quantization,
                                               DeferredValues* deferred, const TargetInfo& target,
                                               TableHost* tables) {
  runtime::register_backends();
  auto function = std::make_shared<ir::Function>(std::string(kPrediction), target);
  {
    ir::Tracer tracer(*function);
    const InterpreterScope scope(tracer);
    const autograd::NoGradScope no_grad;
    Tensors inputs;
    std::map<std::string, Tensor> fields;
    for (auto& [name, type] : lang::input_types(program, entry)) {
      TensorType wanted = type;
      if (use_float64 && wanted.dtype == DType::kF32) wanted.dtype = DType::kF64;
      inputs.push_back(tracer.input({ir::PortKind::kValue, name}, wanted));
      fields.emplace(name, inputs.back());
    }
    const Tensor random =
        tracer.input({ir::PortKind::kRandom, "seed_and_step"}, {DType::kU64, {Dim(2)}});
    const RandomScope random_scope(random);
    TraceBinding ports(store, use_float64, tracer);
    ports.deferred = deferred;
    ports.tables = tables;
    ports.fields = std::move(fields);
    lang::EvaluationOptions options;
    options.training = false;
    options.store = &ports;
    if (dims) ports.known_dims = dims->known;
    std::unique_ptr<Interpreter> quantizer;
    std::optional<InterpreterScope> quantizing;
    if (quantization) {
      const auto array = [&store](const std::string& path, const Dims& shape,
                                  DType dtype) -> std::optional<Array> {
        if (const auto p = store.parameters.find(path); p != store.parameters.end())
          return p->second.value;
        if (const auto state = store.states.find(path); state != store.states.end())
          return state->second;
        return store.preset ? store.preset(path, shape, dtype) : std::nullopt;
      };
      quantizer = quantization->interpreter(
          {ports, [&ports](const Tensor& tensor) { return ports.name_of(tensor); }, array},
          quant::FakeQuantMode::kPrediction);
      quantizing.emplace(*quantizer);
    }
    try {
      for (lang::NamedTensor& out : lang::run_entry(program, entry, inputs, options))
        tracer.output({ir::PortKind::kValue, out.name}, out.tensor);
    } catch (const Error&) {
      if (dims && ports.lacks_dims) return nullptr;
      throw;
    }
    ports.finish();
    if (dims) dims->fixed = ports.fixed_dims;
  }
  runtime::optimize_for_saving(*function);
  return function;
}

std::shared_ptr<const quant::FakeQuantization> read_quantization(const config::Node& config) {
  const config::Node* section = config.find("quant");
  const config::Node* training = section ? section->find("train") : nullptr;
  if (!training || training->is_null()) return nullptr;
  config::Diagnostics diagnostics;
  quant::QuantConfig out = quant::read_quant_section(config::Section(*section), diagnostics);
  diagnostics.raise();
  return std::make_shared<const quant::FakeQuantization>(std::move(out));
}

OutputScale output_scale(const ir::Function& function, size_t output) {
  static const std::set<std::string_view> kKeeping = {"cast",    "reshape", "squeeze", "unsqueeze",
                                                      "flatten", "copy",    "clip"};
  const ir::Value* value = function.body.results[output];
  while (value && value->producer && kKeeping.contains(value->producer->op->name()))
    value = value->producer->operands[0];
  if (!value || !value->producer) return OutputScale::kUnknown;
  const std::string_view name = value->producer->op->name();
  return name == "softmax"       ? OutputScale::kSoftmax
         : name == "log_softmax" ? OutputScale::kLogSoftmax
         : name == "sigmoid"     ? OutputScale::kSigmoid
                                 : OutputScale::kUnknown;
}

ir::Slot state_slot(const ParameterStore& store, const std::string& path) {
  const Array& value = store.states.at(path);
  const auto initializer = store.state_initializers.find(path);
  return {.name = path,
          .type = {value.dtype, to_shape(value.shape)},
          .initializer = initializer == store.state_initializers.end() ? "" : initializer->second,
          .scope = store.sequence_starts.contains(path) ? ir::SlotScope::kSequence
                   : is_model_state(path)               ? ir::SlotScope::kModel
                                                        : ir::SlotScope::kTraining};
}

ir::Module prediction_module(std::shared_ptr<ir::Function> function, const std::string& name,
                             const ParameterStore& store) {
  ir::Module module;
  module.name = name;
  for (const auto& [path, p] : store.parameters)
    module.parameters.push_back(
        {path, {p.value.dtype, to_shape(p.value.shape)}, p.initializer, true});
  for (const auto& [path, value] : store.states)
    if (is_model_state(path)) module.states.push_back(state_slot(store, path));
  if (function) module.functions.push_back(std::move(function));
  return module;
}

}  // namespace paddle::program
