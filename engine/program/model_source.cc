#include "program/model_source.h"

#include <algorithm>
#include <filesystem>

#include "base/files.h"
#include "config/overrides.h"
#include "lang/eval/evaluator.h"
#include "program/model_config.h"
#include "program/prediction.h"
#include "program/table_host.h"

namespace paddle::program {

namespace fs = std::filesystem;

namespace {

[[noreturn]] void reject_function(const std::string& place, const std::string& wanted,
                                  const std::vector<std::string>& names) {
  fail(ErrorCode::kUsage, place, ": has no function '", wanted, "'", did_you_mean(wanted, names),
       "; it has ", join(names, ", "));
}

/// "model" and the further functions of a program.
std::vector<std::string> function_names(const lang::Program& program) {
  std::vector<std::string> names = {"model"};
  for (const lang::EntryPoint& each : program.functions) names.push_back(each.name);
  return names;
}

}  // namespace

namespace {

bool is_quantized(const ir::Function& function) {
  bool found = false;
  ir::for_each_operation(function.body, [&](const ir::Operation& operation) {
    found = found || operation.op->name().find("quantize") != std::string_view::npos;
  });
  return found;
}

/// Whether the tables of more than `limit` bytes are inputs of the function, and no others.
bool has_inputs_for(const ir::Function& function, const FolderTables& stored, uint64_t limit) {
  const std::vector<std::string> inputs = row_tables(function);
  const auto is_input = [&](const std::string& table) {
    return std::binary_search(inputs.begin(), inputs.end(), table);
  };
  const auto is_searched = [&](const std::string& table) {
    return std::any_of(
        function.inputs.begin(), function.inputs.end(),
        [name = table_keys(table)](const ir::Port& port) { return port.name == name; });
  };
  for (const ServedTables* const tables : {&stored.inside, &stored.apart})
    for (const auto& [name, table] : tables->all())
      if (table->bytes() > limit ? is_searched(name) : is_input(name)) return false;
  return true;
}

/// The tables that a trace takes as inputs.
std::shared_ptr<ServedTables> tables_of_trace(const FolderTables& stored,
                                              std::optional<uint64_t> limit) {
  auto out = std::make_shared<ServedTables>();
  for (const auto& [name, table] : stored.apart.all())
    if (!limit || table->bytes() > *limit) out->add(table);
  for (const auto& [name, table] : stored.inside.all())
    if (limit && table->bytes() > *limit) out->add(table);
  return out;
}

/// The config of a folder whose function is to be traced: program, precision and quantization.
void read_config(const std::string& path, const std::string& function, ModelFolder& out) {
  const std::vector<NamedModel> models = read_models(*out.metadata.config);
  if (!models[0].name.empty())
    fail(ErrorCode::kUsage, path,
         ": is a checkpoint of several models; the run's model/ and models/ "
         "hold each of them when it has ended");
  out.program = models[0].program;
  out.functions = function_names(*out.program);
  out.entry = out.program->find_entry(function);
  if (!out.entry) reject_function(path, function, out.functions);
  const config::Node* precision = out.metadata.config->find("precision");
  out.use_float64 = precision && precision->text == "float64";
  out.quantization = read_quantization(*out.metadata.config);
}

}  // namespace

ModelFolder open_model_folder(const std::string& path, const std::string& function,
                              std::optional<uint64_t> inline_tables) {
  const fs::path folder(path);
  const std::string file = (folder / "module.txt").string();
  const ir::Module module = ir::parse(read_file(file, uint64_t{1} << 30, ErrorCode::kModel), file);
  ir::verify(module);
  ModelFolder out;
  out.name = module.name;
  const std::string inference = (folder / "inference").string();  // of a checkpoint
  out.metadata = read_metadata(is_directory(inference) ? inference : path);
  out.weights =
      std::make_shared<const formats::SafetensorsReader>((folder / "model.safetensors").string());
  out.stored = tables_of_folder(*out.weights);
  const bool predicts = std::any_of(module.functions.begin(), module.functions.end(),
                                    [](const auto& each) { return each->name == kPrediction; });
  if (predicts) {
    for (const auto& each : module.functions) {
      out.functions.push_back(each->name == kPrediction ? "model" : each->name);
      if (out.functions.back() == function) out.predict = each;
    }
    if (!out.predict) reject_function(path, function, out.functions);
    if (!inline_tables || !out.metadata.config || is_quantized(*out.predict) ||
        has_inputs_for(*out.predict, out.stored, *inline_tables)) {
      out.tables = std::make_shared<ServedTables>(out.stored.apart);
      for (const auto& [name, table] : out.stored.inside.all()) out.tables->add(table);
      return out;
    }
    out.predict = nullptr;
  }
  if (!out.metadata.config) fail(ErrorCode::kModel, file, ": has no function 'predict'");
  read_config(path, function, out);
  out.tables = tables_of_trace(out.stored, inline_tables);
  return out;
}

namespace {

/// Whether the store has this parameter from the files of a table.
bool is_table_of_files(const std::string& name, const formats::SafetensorsReader& weights,
                       const ParameterStore& store) {
  if (weights.find(name) || !store.parameters.contains(name)) return false;
  const size_t dot = name.rfind('.');
  return dot != std::string::npos && store.parameters.contains(table_keys(name.substr(0, dot)));
}

}  // namespace

void read_weights(const formats::SafetensorsReader& weights, const ir::Function& function,
                  ParameterStore& store) {
  for (size_t i = 0; i < function.inputs.size(); ++i) {
    const ir::Port& port = function.inputs[i];
    if (port.kind != ir::PortKind::kParameter && port.kind != ir::PortKind::kState) continue;
    const TensorType& type = function.body.arguments[i]->type;
    // Checkpoints lack the caches of functions that are not trained; they begin as the model says.
    if (store.sequence_starts.contains(port.name) && !weights.find(port.name)) continue;
    if (is_table_of_files(port.name, weights, store)) continue;
    const Array value = weights.read(port.name);
    if (value.dtype != type.dtype || value.shape != concrete(type.shape))
      fail(ErrorCode::kModel, weights.path(), ": '", port.name, "' is ", text(value.dtype),
           str(value.shape), ", the module needs ", type);
    if (port.kind == ir::PortKind::kParameter)
      store.parameters[port.name].value = value;
    else
      store.states[port.name] = value;
    const auto start = store.sequence_starts.find(port.name);
    if (start != store.sequence_starts.end()) start->second = value;
  }
}

void read_tables(const ModelFolder& folder, ParameterStore& store) {
  for (const auto& [name, table] : folder.stored.inside.all()) {
    if (folder.tables->provides(name)) continue;
    store.parameters[table_keys(name)] = {folder.weights->read(table_keys(name)), ""};
    store.parameters[table_weight(name)] = {folder.weights->read(table_weight(name)), ""};
  }
  for (const auto& [name, table] : folder.stored.apart.all()) {
    if (folder.tables->provides(name)) continue;
    tables::TableContent content = table->sorted_content();
    store.parameters[table_keys(name)] = {std::move(content.keys), ""};
    store.parameters[table_weight(name)] = {std::move(content.weight), ""};
  }
}

ModelFile open_model_file(const std::string& path, const LoadOptions& options) {
  lang::ProgramOptions program_options;
  const auto [file, variant] = lang::split_variant(path);
  if (!file_exists(file)) fail(ErrorCode::kUsage, file, ": no such file or folder");
  program_options.variant = variant;
  for (const std::string& each : options.overrides)
    program_options.overrides.push_back(config::parse_override(each));
  ModelFile out;
  out.program = lang::read_program(file, program_options);
  lang::check_program(*out.program);
  out.entry = out.program->find_entry(options.function);
  if (!out.entry) reject_function(file, options.function, function_names(*out.program));
  if (!options.weights.empty() && !file_exists(options.weights))
    fail(ErrorCode::kUsage, options.weights, ": no such file");
  return out;
}

void preset_weights(ParameterStore& store, const std::string& weights) {
  const auto file = std::make_shared<formats::SafetensorsReader>(weights);
  store.preset = [file](const std::string& parameter, const Dims& shape,
                        DType dtype) -> std::optional<Array> {
    const formats::SafetensorsEntry* entry = file->find(parameter);
    if (!entry || entry->shape != shape || entry->dtype != dtype) return std::nullopt;
    return file->read(*entry);
  };
}

namespace {

/// The store with everything that any entry of the file has.
ParameterStore store_of_all(const ModelFile& file, const std::map<std::string, int64_t>& dims,
                            const ParameterStore& store) {
  ParameterStore whole = store;
  const auto collect = [&](const lang::EntryPoint& entry) {
    StaticDims any{dims, {}};
    DeferredValues unread;
    if (&entry != file.entry)
      trace_prediction(*file.program, entry, whole, false, &any, nullptr, &unread);
  };
  collect(file.program->model);
  for (const lang::EntryPoint& entry : file.program->functions) collect(entry);
  return whole;
}

LoadReport load_and_check(const ParameterStore& whole, const LoadOptions& options,
                          ParameterStore& store) {
  LoadReport report = load_weights(options.weights, store, false);
  std::erase_if(report.unused, [&](const std::string& name) {
    return whole.parameters.contains(name) || whole.states.contains(name);
  });
  check_report(report, options.weights, options.allow_missing, options.allow_unused);
  return report;
}

}  // namespace

LoadReport load_file_weights(const ModelFile& file, const LoadOptions& options,
                             const std::map<std::string, int64_t>& dims, ParameterStore& store) {
  return load_and_check(store_of_all(file, dims, store), options, store);
}

void check_file_weights(const ModelFile& file, const LoadOptions& options,
                        const std::map<std::string, int64_t>& dims, const ParameterStore& store) {
  const ParameterStore whole = store_of_all(file, dims, store);
  const formats::SafetensorsReader reader(options.weights);
  // In the types of the file nothing is converted, and arrays stay where they are.
  ParameterStore same_types = store;
  const auto retype = [&](const std::string& name, Array& array) {
    const formats::SafetensorsEntry* entry = reader.find(name);
    if (entry && entry->shape == array.shape) array = Array::reserve(entry->dtype, entry->shape);
  };
  for (auto& [name, parameter] : same_types.parameters) retype(name, parameter.value);
  for (auto& [name, state] : same_types.states) retype(name, state);
  load_and_check(whole, options, same_types);
}

}  // namespace paddle::program
