#include "program/traced_model.h"

#include <filesystem>

#include "base/files.h"
#include "config/overrides.h"
#include "formats/safetensors.h"
#include "lang/eval/evaluator.h"
#include "program/model_config.h"
#include "program/onnx_program.h"
#include "program/prediction.h"

namespace paddle::program {
namespace {

namespace fs = std::filesystem;

std::function<Array(const std::string&)> weights_of(std::shared_ptr<const ParameterStore> store) {
  return [store](const std::string& name) {
    if (const auto parameter = store->parameters.find(name); parameter != store->parameters.end())
      return parameter->second.value;
    const auto start = store->sequence_starts.find(name);
    return start != store->sequence_starts.end() ? start->second : store->states.at(name);
  };
}

TracedModel trace_program(const lang::Program& program, const lang::EntryPoint& entry,
                          std::shared_ptr<ParameterStore> store, bool use_float64,
                          const std::map<std::string, int64_t>& dims) {
  StaticDims wanted{dims, {}};
  TracedModel out;
  out.name = program.name;
  out.function = trace_prediction(program, entry, *store, use_float64, &wanted);
  if (!out.function)
    fail(ErrorCode::kUsage, "'", program.name,
         "' asks for the value of a dim (static); give it with --dim NAME=VALUE");
  out.weight = weights_of(store);
  out.functions = {"model"};
  for (const lang::EntryPoint& each : program.functions) out.functions.push_back(each.name);
  return out;
}

/// Initial values that come from a safetensors file where it has the parameter.
void preset_from(ParameterStore& store, const std::string& weights) {
  const auto file = std::make_shared<formats::SafetensorsReader>(weights);
  store.preset = [file](const std::string& parameter, const Dims& shape,
                        DType dtype) -> std::optional<Array> {
    const formats::SafetensorsEntry* entry = file->find(parameter);
    if (!entry || entry->shape != shape || entry->dtype != dtype) return std::nullopt;
    return file->read(*entry);
  };
}

TracedModel trace_folder(const std::string& path, const std::map<std::string, int64_t>& dims) {
  const fs::path folder(path);
  const fs::path inference = folder / "inference";  // of a checkpoint
  const ModelMetadata metadata =
      read_metadata(is_directory(inference.string()) ? inference.string() : path);
  const std::string file = (folder / "module.txt").string();
  const ir::Module module = ir::parse(read_file(file, uint64_t{1} << 30, ErrorCode::kModel), file);
  ir::verify(module);
  const std::string weights = (folder / "model.safetensors").string();
  TracedModel out;
  for (const auto& function : module.functions)
    if (function->name == "predict") out.function = function;
  if (out.function) {
    const auto reader = std::make_shared<formats::SafetensorsReader>(weights);
    out.weight = [reader](const std::string& name) { return reader->read(name); };
    out.functions = {"model"};
  } else {
    if (!metadata.config) fail(ErrorCode::kModel, file, ": has no function 'predict'");
    const auto program = read_model(*metadata.config);
    auto store = std::make_shared<ParameterStore>();
    preset_from(*store, weights);
    const config::Node* precision = metadata.config->find("precision");
    out = trace_program(*program, program->model, store, precision && precision->text == "float64",
                        dims);
  }
  out.name = module.name;
  out.metadata = metadata;
  return out;
}

TracedModel trace_file(const std::string& path, const LoadOptions& options,
                       const std::map<std::string, int64_t>& dims) {
  const auto [file, variant] = lang::split_variant(path);
  if (!file_exists(file)) fail(ErrorCode::kUsage, file, ": there is no such file or folder");
  lang::ProgramOptions program_options;
  program_options.variant = variant;
  for (const std::string& each : options.overrides)
    program_options.overrides.push_back(config::parse_override(each));
  const auto program = lang::read_program(file, program_options);
  lang::check_program(*program);
  const lang::EntryPoint* entry = program->find_entry(options.function);
  if (!entry) {
    std::vector<std::string> names = {"model"};
    for (const lang::EntryPoint& each : program->functions) names.push_back(each.name);
    fail(ErrorCode::kUsage, file, ": has no function '", options.function, "'",
         did_you_mean(options.function, names), "; it has ", join(names, ", "));
  }
  auto store = std::make_shared<ParameterStore>();
  store->seed = options.seed;
  if (!options.weights.empty()) {
    if (!file_exists(options.weights))
      fail(ErrorCode::kUsage, options.weights, ": there is no such file");
    preset_from(*store, options.weights);
  }
  TracedModel out = trace_program(*program, *entry, store, false, dims);
  if (!options.weights.empty()) {
    // Weights of other entries of the file are not unused.
    ParameterStore whole = *store;
    for (const std::string& name : out.functions)
      if (const lang::EntryPoint* other = program->find_entry(name); other != entry) {
        StaticDims any{dims, {}};
        trace_prediction(*program, *other, whole, false, &any);
      }
    LoadReport report = load_weights(options.weights, *store, false);
    std::erase_if(report.unused, [&](const std::string& name) {
      return whole.parameters.contains(name) || whole.states.contains(name);
    });
    check_report(report, options.weights, options.allow_missing, options.allow_unused);
  }
  return out;
}

}  // namespace

TracedModel trace_model(const std::string& path, const LoadOptions& options,
                        const std::map<std::string, int64_t>& dims) {
  if (is_directory(path)) return trace_folder(find_model_folder(path), dims);
  if (!path.ends_with(".onnx")) return trace_file(path, options, dims);
  if (!file_exists(path)) fail(ErrorCode::kUsage, path, ": there is no such file");
  const auto program = read_onnx_program(path);
  return trace_program(*program, program->model, std::make_shared<ParameterStore>(), false, dims);
}

}  // namespace paddle::program
