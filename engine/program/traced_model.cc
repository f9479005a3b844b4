#include "program/traced_model.h"

#include "base/files.h"
#include "formats/safetensors.h"
#include "ir/clone.h"
#include "ir/replay.h"
#include "program/model_form.h"
#include "program/model_source.h"
#include "program/onnx_program.h"
#include "program/prediction.h"
#include "runtime/execute.h"

namespace paddle::program {
namespace {

std::function<Array(const std::string&)> weights_of(std::shared_ptr<const ParameterStore> store) {
  return [store](const std::string& name) {
    if (const auto parameter = store->parameters.find(name); parameter != store->parameters.end())
      return parameter->second.value;
    const auto start = store->sequence_starts.find(name);
    return start != store->sequence_starts.end() ? start->second : store->states.at(name);
  };
}

/// The function with sizes of its inputs that are at least 1, as those of a model file are: a
/// module does not say so, and the slice of a first token would have the size min(1, length).
std::shared_ptr<ir::Function> with_positive_sizes(const ir::Function& function) {
  std::shared_ptr<ir::Function> out = ir::clone(function);
  for (ir::Value* argument : out->body.arguments)
    for (Dim& dim : argument->type.shape)
      dim = dim.substitute(
          [](const std::string& symbol) { return std::optional(Dim::symbol(symbol, 1)); });
  runtime::register_backends();  // a trace keeps operations that have a kernel
  ir::retrace(*out);
  return out;
}

TracedModel trace_program(const lang::Program& program, const lang::EntryPoint& entry,
                          std::shared_ptr<ParameterStore> store, bool use_float64,
                          const std::map<std::string, int64_t>& dims, WeightValues values,
                          const quant::FakeQuantization* quantization = nullptr,
                          TableHost* tables = nullptr) {
  const auto deferred = std::make_shared<DeferredValues>();
  StaticDims wanted{dims, {}};
  TracedModel out;
  out.name = program.name;
  out.function =
      trace_prediction(program, entry, *store, use_float64, &wanted, quantization,
                       values == WeightValues::kDeferred ? deferred.get() : nullptr, {}, tables);
  if (!out.function)
    fail(ErrorCode::kUsage, "'", program.name,
         "' needs the value of a dim (static); give it with --dim NAME=VALUE");
  out.weight = [deferred, made = weights_of(store)](const std::string& name) {
    const auto value = deferred->find(name);
    return value == deferred->end() ? made(name) : value->second();
  };
  out.functions = {"model"};
  for (const lang::EntryPoint& each : program.functions) out.functions.push_back(each.name);
  return out;
}

TracedModel trace_folder(const std::string& path, const LoadOptions& options,
                         const std::map<std::string, int64_t>& dims, WeightValues values) {
  ModelFolder folder = open_model_folder(path, options.function, options.inline_tables);
  TracedModel out;
  if (folder.predict) {
    out.function = with_positive_sizes(*folder.predict);
    out.weight = [weights = folder.weights](const std::string& name) {
      return weights->read(name);
    };
  } else {
    const auto store = std::make_shared<ParameterStore>();
    read_tables(folder, *store);
    // The trace of quantized layers needs values.
    if (folder.quantization) {
      preset_weights(*store, folder.weights->path());
      values = WeightValues::kTraced;
    }
    out = trace_program(*folder.program, *folder.entry, store, folder.use_float64, dims, values,
                        folder.quantization.get(), folder.tables.get());
    read_weights(*folder.weights, *out.function, *store);
    out.weight = weights_of(store);
  }
  out.tables = folder.tables;
  out.functions = folder.functions;
  out.name = folder.name;
  out.metadata = std::move(folder.metadata);
  return out;
}

/// As preset_weights, in whatever type the file has them.
void preset_cast_weights(ParameterStore& store, const std::string& weights) {
  const auto file = std::make_shared<const formats::SafetensorsReader>(weights);
  store.preset = [file](const std::string& name, const Dims& shape,
                        DType dtype) -> std::optional<Array> {
    const formats::SafetensorsEntry* entry = file->find(name);
    if (!entry || entry->shape != shape || !info(entry->dtype).has_kernels) return std::nullopt;
    return file->read(*entry).cast(dtype);
  };
}

TracedModel trace_file(const std::string& path, const LoadOptions& options,
                       const std::map<std::string, int64_t>& dims, WeightValues values) {
  const ModelFile file = open_model_file(path, options);
  const auto store = std::make_shared<ParameterStore>();
  store->seed = options.seed;
  store->preset = options.preset;
  const bool is_deferred = values == WeightValues::kDeferred,
             has_weights = !options.weights.empty();
  if (has_weights && is_deferred)
    preset_cast_weights(*store, options.weights);
  else if (has_weights)
    preset_weights(*store, options.weights);
  TracedModel out = trace_program(*file.program, *file.entry, store, false, dims, values);
  if (has_weights && is_deferred)
    check_file_weights(file, options, dims, *store);
  else if (has_weights)
    load_file_weights(file, options, dims, *store);
  return out;
}

}  // namespace

TracedModel trace_model(const std::string& path, const LoadOptions& options,
                        const std::map<std::string, int64_t>& dims, WeightValues values) {
  if (form_of_model(path) != ModelForm::kGraph)
    return is_directory(path) ? trace_folder(find_model_folder(path), options, dims, values)
                              : trace_file(path, options, dims, values);
  if (!file_exists(path)) fail(ErrorCode::kUsage, path, ": no such file");
  const auto program = read_onnx_program(path);
  return trace_program(*program, program->model, std::make_shared<ParameterStore>(), false, dims,
                       values);
}

TracedModel trace_entry(const lang::Program& program, const lang::EntryPoint& entry,
                        const std::map<std::string, int64_t>& dims, WeightValues values) {
  return trace_program(program, entry, std::make_shared<ParameterStore>(), false, dims, values);
}

}  // namespace paddle::program
