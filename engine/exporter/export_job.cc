#include "exporter/export_job.h"

#include <algorithm>
#include <filesystem>
#include <system_error>

#include <nlohmann/json.hpp>

#include "base/files.h"
#include "exporter/check.h"
#include "exporter/copied.h"
#include "exporter/exportable.h"
#include "exporter/external_tables.h"
#include "exporter/preprocess.h"
#include "onnx/validity/validity.h"
#include "ops/core/op.h"
#include "program/traced_model.h"

namespace paddle::exporter {
namespace {

using Json = nlohmann::ordered_json;

/// The functions to export; "" is the one that `load` names.
std::vector<std::string> functions_of(const ExportJob& job) {
  return job.functions.empty() ? std::vector<std::string>{""} : job.functions;
}

program::LoadOptions load_options(const ExportJob& job, const std::string& function) {
  program::LoadOptions out = job.load;
  if (!function.empty()) out.function = function;
  return out;
}

program::TracedModel traced(const ExportJob& job, const std::string& function) {
  return program::trace_model(job.model, load_options(job, function), job.dims,
                              program::WeightValues::kDeferred);
}

/// FILE.onnx, or FILE.function.onnx of several functions.
std::string output_of(const ExportJob& job, const std::string& function) {
  if (job.functions.size() < 2) return job.output;
  const std::string ending = ".onnx";
  return job.output.substr(0, job.output.size() - ending.size()) + "." + function + ending;
}

/// Fails for a fixed dim that no function has.
void check_dims(const ExportJob& job, std::span<const Exportable> sources) {
  std::vector<std::string> symbols;
  for (const Exportable& source : sources)
    for (const ir::Value* argument : source.function.body.arguments)
      for (const Dim& dim : argument->type.shape) dim.collect_symbols(symbols);
  std::sort(symbols.begin(), symbols.end());
  symbols.erase(std::unique(symbols.begin(), symbols.end()), symbols.end());
  for (const auto& [name, value] : job.dims) {
    if (!std::binary_search(symbols.begin(), symbols.end(), name))
      fail(ErrorCode::kUsage, "--dim ", name, ": the model has no such dim",
           did_you_mean(name, symbols), symbols.empty() ? "" : "; it has ", join(symbols, ", "));
    if (value < 0) fail(ErrorCode::kUsage, "--dim ", name, ": expected a size, found ", value);
  }
}

void require_exportable(std::span<const Exportable> sources, const std::string& model) {
  std::vector<onnx::Unsupported> missing;
  for (const Exportable& source : sources)
    for (const onnx::Unsupported& each : onnx::unsupported_operations(source.function))
      missing.push_back(each);
  if (missing.empty()) return;
  Error error(ErrorCode::kModel,
              str(model, ": ", missing.size(),
                  missing.size() == 1 ? " operation has" : " operations have", " no ONNX form"));
  for (const auto& each : missing)
    error.note(str(each.source, each.source.empty() ? "" : ": ", each.operation, ": ", each.note));
  throw error;
}

std::vector<std::pair<std::string, std::string>> metadata_of(const ExportJob& job,
                                                             const program::TracedModel& model) {
  auto out = job.metadata;
  std::vector<std::string> labels = job.labels;
  if (labels.empty() && model.metadata) labels = model.metadata->classes;
  if (!labels.empty()) out.emplace_back("labels", Json(labels).dump());
  return out;
}

Json report_of(const ExportJob& job, const ExportResult& result) {
  Json checks = Json::array();
  for (const CheckResult& each : result.checks) {
    Json check = {
        {"dims", each.dims}, {"ran", each.ran}, {"passed", each.ran && each.difference.empty()}};
    if (!each.difference.empty()) check["difference"] = each.difference;
    if (!each.node.empty()) check["node"] = each.node;
    check["error"] = each.largest_error;
    checks.push_back(check);
  }
  Json out = {{"version", 1},
              {"model", job.model},
              {"file", std::filesystem::path(result.file).filename().string()},
              {"opset", result.opset},
              {"opset_reason", result.opset_reason},
              {"nodes", result.nodes},
              {"operations", result.operations},
              {"bytes", result.written.model_bytes}};
  if (job.format != onnx::QuantizedFormat::kQdq) out["quantized_layers"] = result.quantized_layers;
  if (!result.written.data_file.empty()) out["data_bytes"] = result.written.data_bytes;
  out["checks"] = checks;
  return out;
}

int64_t count_nodes(const formats::onnx::Graph& graph) {
  int64_t count = static_cast<int64_t>(graph.nodes.size());
  for (const auto& node : graph.nodes)
    for (const auto& attribute : node.attributes)
      for (const auto& inner : attribute.graphs) count += count_nodes(*inner);
  return count;
}

}  // namespace

std::string report_text(const ExportJob& job, const ExportResult& result) {
  return report_of(job, result).dump(2) + "\n";
}

bool ExportResult::passed() const {
  return std::all_of(checks.begin(), checks.end(),
                     [](const CheckResult& each) { return each.difference.empty(); });
}

std::vector<OperationForm> list_operations(const ExportJob& job) {
  std::vector<OperationForm> out;
  for (const std::string& function : functions_of(job))
    for (OperationForm& each : forms_of(*traced(job, function).function)) {
      const auto known = std::find_if(out.begin(), out.end(), [&](const OperationForm& other) {
        return other.operation == each.operation;
      });
      if (known == out.end())
        out.push_back(std::move(each));
      else
        known->count += each.count;
    }
  return out;
}

std::vector<OperationForm> list_all_operations() {
  std::vector<OperationForm> out;
  for (const Op* const op : all_ops()) {
    const onnx::ExportSupport support = onnx::export_support(*op);
    OperationForm& form = out.emplace_back();
    form.operation = op->name();
    form.form = onnx::text(support.form);
    form.note = support.note;
  }
  std::sort(out.begin(), out.end(),
            [](const auto& a, const auto& b) { return a.operation < b.operation; });
  return out;
}

std::vector<OperationForm> forms_of(const ir::Function& function) {
  std::vector<OperationForm> out;
  ir::for_each_operation(function.body, [&](const ir::Operation& operation) {
    const std::string name(operation.op->name());
    const auto known = std::find_if(
        out.begin(), out.end(), [&](const OperationForm& each) { return each.operation == name; });
    if (known != out.end()) {
      ++known->count;
      return;
    }
    const onnx::ExportSupport support = onnx::export_support(*operation.op);
    out.push_back({name, text(support.form), support.note, operation.location, 1});
  });
  return out;
}

void require_new_outputs(const ExportJob& job, const std::vector<std::string>& outputs) {
  for (const std::string& output : outputs)
    if (!job.overwrite && file_exists(output))
      fail(ErrorCode::kUsage, output, ": already exists (--overwrite replaces it)");
}

namespace {

/// A written file that waits for its name.
struct Candidate {
  const Exportable& source;
  onnx::ExportedModel exported;
  ExportResult result;
  std::string path = source.output + ".unchecked.onnx";
};

onnx::ExportedModel graph_of(const ExportJob& job, const Exportable& source) {
  onnx::ExportOptions options;
  options.opset = job.opset;
  options.dims = job.dims;
  options.name = source.name.empty() ? "model" : source.name;
  options.producer = job.producer;
  options.metadata = source.metadata;
  options.training = job.training;
  if (source.least_opset > options.least_opset) {
    options.least_opset = source.least_opset;
    options.least_opset_reason = source.least_opset_reason;
  }
  if (job.opset != 0 && job.opset < source.least_opset)
    fail(ErrorCode::kUsage, job.model, ": ", source.least_opset_reason, " needs opset ",
         source.least_opset, ", --opset is ", job.opset);
  if (job.most_opset != 0 && job.most_opset < source.least_opset)
    fail(ErrorCode::kUsage, job.model, ": ", source.least_opset_reason, " needs opset ",
         source.least_opset, ", ", job.target, " has ", job.most_opset);
  options.most_opset = job.most_opset;
  options.target = job.target;
  options.format = job.format;
  options.low = job.low;
  options.keep_float = job.keep_float;
  options.defer_weights = true;
  onnx::ExportedModel out = onnx::export_function(source.function, source.weight, options);
  if (source.finish) {
    source.finish(out);
    onnx::require_valid(out.model, source.output);
  }
  if (job.training) out.model.metadata.emplace_back("states", Json(out.next).dump());
  return out;
}

/// The files of an export while they are checked; removed where they stay without a name.
class Candidates {
 public:
  Candidates(const ExportJob& job, std::span<const Exportable> sources)
      : job_(job), data_(job.output + ".unchecked.onnx.data"), options_(job.write) {
    all_.reserve(sources.size());  // lookups of weights stay where they are
    for (const Exportable& source : sources) {
      Candidate& each = all_.emplace_back(Candidate{source, graph_of(job, source), {}});
      each.result.file = source.output;
      each.result.opset = each.exported.opset;
      each.result.opset_reason = each.exported.opset_reason;
      each.result.quantized_layers = each.exported.quantized_layers;
      each.result.operations = each.exported.native;
      each.result.nodes = count_nodes(each.exported.model.graph);
      for (const auto& [initializer, weight] : each.exported.weights)
        weights_[weight] = &each.exported.weight;
    }
    // A function of several that has the others' weights shares them.
    if (sources.size() > 1 && options_.external == External::kAuto)
      options_.external = External::kAlways;
    options_.weight = [this](const std::string& name) { return (*weights_.at(name))(name); };
  }
  ~Candidates() {
    for (const Candidate& each : all_) remove_model(each.path);
    remove_model(data_);
  }
  Candidates(const Candidates&) = delete;
  Candidates& operator=(const Candidates&) = delete;

  void write() {
    require_new_data();
    const auto written = formats::onnx::write_models(files(), data_, options_);
    for (size_t i = 0; i < all_.size(); ++i) all_[i].result.written = written[i];
  }

  void check() {
    for (Candidate& each : all_) each.result.checks = each.source.check(each.path, each.exported);
  }

  /// Gives the files their names, and the results theirs.
  std::vector<ExportResult> name() {
    const bool passed = std::all_of(all_.begin(), all_.end(),
                                    [](const Candidate& each) { return each.result.passed(); });
    const std::string ending = passed ? "" : ".failed";
    const std::string data = job_.output + ending + ".data";
    const bool external = !all_[0].result.written.data_file.empty();
    // A model holds the name of its data file.
    if (external) {
      formats::onnx::write_without_data(files(), data, options_);
      rename(data_, data);
    }
    std::vector<ExportResult> out;
    for (Candidate& each : all_) {
      each.result.file = each.source.output + ending;
      rename(each.path, each.result.file);
      if (external) {
        each.result.written.data_file = data;
        each.result.written.model_bytes = file_size(each.result.file);
      }
      write_file_atomically(each.source.output + ".report.json", report_text(job_, each.result));
      out.push_back(std::move(each.result));
    }
    return out;
  }

 private:
  using External = formats::onnx::WriteOptions::External;

  std::vector<formats::onnx::ModelFile> files() const {
    std::vector<formats::onnx::ModelFile> out;
    for (const Candidate& each : all_)
      out.push_back({&each.exported.model, each.path, each.exported.weights});
    return out;
  }

  /// kUsage if the data file would replace one.
  void require_new_data() const {
    const std::string data = job_.output + ".data";
    if (job_.overwrite || !file_exists(data)) return;
    const bool external = options_.external == External::kAlways ||
                          std::any_of(all_.begin(), all_.end(), [](const Candidate& each) {
                            return formats::onnx::needs_external_data(each.exported.model);
                          });
    if (external) fail(ErrorCode::kUsage, data, ": already exists (--overwrite replaces it)");
  }

  static void rename(const std::string& from, const std::string& to) {
    std::error_code error;
    std::filesystem::rename(from, to, error);
    if (error) fail(ErrorCode::kDevice, to, ": ", error.message());
  }

  const ExportJob& job_;
  std::string data_;
  formats::onnx::WriteOptions options_;
  std::vector<Candidate> all_;
  std::map<std::string, const onnx::WeightLookup*> weights_;  ///< where a weight comes from
};

}  // namespace

std::vector<ExportResult> export_checked(const ExportJob& job,
                                         std::span<const Exportable> sources) {
  check_dims(job, sources);
  require_exportable(sources, job.model);
  Candidates candidates(job, sources);
  candidates.write();
  if (job.checks > 0) candidates.check();
  return candidates.name();
}

namespace {

std::vector<ExportResult> export_functions(const ExportJob& job,
                                           const std::function<void(const std::string&)>& note) {
  std::vector<std::string> outputs;
  for (const std::string& function : functions_of(job)) outputs.push_back(output_of(job, function));
  require_new_outputs(job, outputs);
  std::vector<program::TracedModel> models;
  std::vector<ExportJob> jobs;  // of one function each
  for (const std::string& function : functions_of(job)) {
    models.push_back(traced(job, function));
    jobs.push_back(job);
    jobs.back().load = load_options(job, function);
  }
  std::vector<const ir::Function*> functions;
  for (const program::TracedModel& model : models) functions.push_back(model.function.get());
  const bool has_tables =
      std::any_of(functions.begin(), functions.end(),
                  [](const ir::Function* each) { return !program::row_tables(*each).empty(); });
  if (has_tables && job.preprocess)
    fail(ErrorCode::kUsage, job.model,
         ": --with-preprocess needs tables inside the file (--inline-tables)");
  if (has_tables && !job.overwrite && is_directory(tables_folder(job.output)))
    fail(ErrorCode::kUsage, tables_folder(job.output),
         ": already exists (--overwrite replaces it)");
  std::optional<Preprocess> preprocess;
  if (job.preprocess)
    preprocess.emplace(job.model, models[0].metadata.value_or(program::ModelMetadata()));
  std::vector<Exportable> sources;
  for (size_t i = 0; i < models.size(); ++i) {
    const program::TracedModel& model = models[i];
    const ExportJob& of_function = jobs[i];
    Exportable source{
        outputs[i], model.name, *model.function, model.weight, metadata_of(job, model), {}};
    if (preprocess) {
      source.finish = [&](onnx::ExportedModel& exported) {
        for (const std::string& line : preprocess->notes(exported.model.graph)) note(line);
        preprocess->insert(exported.model);
      };
      source.least_opset = preprocess->least_opset();
      source.least_opset_reason =
          source.least_opset > 17 ? "Resize with antialiasing" : "--with-preprocess";
      source.check = [&](const std::string& file, const onnx::ExportedModel&) {
        return preprocess->check(of_function, file, note);
      };
    } else {
      source.check = [&](const std::string& file, const onnx::ExportedModel& exported) {
        return check_export(of_function, file, model, exported, note);
      };
    }
    sources.push_back(std::move(source));
  }
  std::vector<ExportResult> out = export_checked(job, sources);
  if (has_tables) {
    out[0].tables = tables_folder(job.output);
    write_external_tables(out[0].tables, functions, *models[0].tables);
  }
  return out;
}

}  // namespace

std::vector<ExportResult> run_export(const ExportJob& job,
                                     const std::function<void(const std::string&)>& note) {
  if (!can_be_copied(job)) return export_functions(job, note);
  try {
    return export_functions(job, note);
  } catch (const Error& error) {
    // The graph may run all the same, as its course may depend on the data.
    const bool of_graph = error.code() == ErrorCode::kModel || error.code() == ErrorCode::kUsage ||
                          error.code() == ErrorCode::kConfig;
    const bool may_write =
        job.overwrite || (!file_exists(job.output) && !file_exists(job.output + ".data"));
    if (!of_graph || !may_write || !file_exists(job.model)) throw;
    return {export_copy(job, error, note)};
  }
}

}  // namespace paddle::exporter
