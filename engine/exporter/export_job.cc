#include "exporter/export_job.h"

#include <algorithm>
#include <filesystem>

#include <nlohmann/json.hpp>

#include "base/files.h"
#include "exporter/check.h"
#include "exporter/exportable.h"
#include "exporter/preprocess.h"
#include "ops/core/op.h"
#include "program/traced_model.h"

namespace paddle::exporter {
namespace {

using Json = nlohmann::ordered_json;

program::TracedModel traced(const ExportJob& job) {
  return program::trace_model(job.model, job.load, job.dims);
}

/// Fails for a fixed dim that the model does not have.
void check_dims(const ExportJob& job, const ir::Function& function) {
  std::vector<std::string> symbols;
  for (const ir::Value* argument : function.body.arguments)
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

void require_exportable(const ir::Function& function, const std::string& model) {
  const auto missing = onnx::unsupported_operations(function);
  if (missing.empty()) return;
  Error error(ErrorCode::kUsage,
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

bool ExportResult::passed() const {
  return std::all_of(checks.begin(), checks.end(),
                     [](const CheckResult& each) { return each.difference.empty(); });
}

std::vector<OperationForm> list_operations(const ExportJob& job) {
  return forms_of(*traced(job).function);
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

void require_new_output(const ExportJob& job) {
  if (!job.overwrite && file_exists(job.output))
    fail(ErrorCode::kUsage, job.output, ": is there already (--overwrite replaces it)");
}

ExportResult export_checked(const ExportJob& job, const Exportable& source) {
  check_dims(job, source.function);
  require_exportable(source.function, job.model);
  onnx::ExportOptions options;
  options.opset = job.opset;
  options.dims = job.dims;
  options.name = source.name.empty() ? "model" : source.name;
  options.producer = job.producer;
  options.metadata = source.metadata;
  options.training = job.training;
  options.least_opset = source.least_opset;
  options.least_opset_reason = source.least_opset_reason;
  if (job.opset != 0 && job.opset < source.least_opset)
    fail(ErrorCode::kUsage, job.model, ": ", source.least_opset_reason, " needs opset ",
         source.least_opset, ", --opset is ", job.opset);
  options.low = job.low;
  options.keep_float = job.keep_float;
  onnx::ExportedModel exported = onnx::export_function(source.function, source.weight, options);
  if (source.finish) source.finish(exported);
  if (job.training) exported.model.metadata.emplace_back("states", Json(exported.next).dump());

  ExportResult result;
  result.opset = exported.opset;
  result.opset_reason = exported.opset_reason;
  result.operations = exported.native;
  result.nodes = count_nodes(exported.model.graph);
  // The file is checked under another name and takes its place when it has passed.
  const std::string candidate = job.checks > 0 ? job.output + ".unchecked.onnx" : job.output;
  result.written = formats::onnx::write_model(exported.model, candidate, job.write);
  result.file = job.output;
  if (job.checks > 0) {
    try {
      result.checks = source.check(candidate, exported);
    } catch (...) {
      remove_model(candidate);
      throw;
    }
    if (!result.passed()) result.file = job.output + ".failed";
    move_model(exported.model, candidate, result.file, job.write, result.written);
  }
  write_file_atomically(job.output + ".report.json", report_of(job, result).dump(2) + "\n");
  return result;
}

ExportResult run_export(const ExportJob& job, const std::function<void(const std::string&)>& note) {
  require_new_output(job);
  const program::TracedModel model = traced(job);
  Exportable source{model.name, *model.function, model.weight, metadata_of(job, model), {}};
  std::optional<Preprocess> preprocess;
  if (job.preprocess) {
    preprocess.emplace(job.model, model.metadata.value_or(program::ModelMetadata()));
    source.finish = [&](onnx::ExportedModel& exported) {
      preprocess->insert(exported.model.graph);
    };
    source.least_opset = preprocess->least_opset();
    if (source.least_opset > 17) source.least_opset_reason = "Resize with antialiasing";
    source.check = [&](const std::string& file, const onnx::ExportedModel&) {
      return preprocess->check(job, file, note);
    };
  } else {
    source.check = [&](const std::string& file, const onnx::ExportedModel& exported) {
      return check_export(job, file, exported, model.weight, note);
    };
  }
  return export_checked(job, source);
}

}  // namespace paddle::exporter
