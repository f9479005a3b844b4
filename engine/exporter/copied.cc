#include "exporter/copied.h"

#include <algorithm>
#include <filesystem>
#include <system_error>

#include <nlohmann/json.hpp>

#include "base/files.h"
#include "exporter/check.h"
#include "exporter/exportable.h"
#include "exporter/onnxruntime.h"
#include "exporter/sample_run.h"
#include "inspect/compare.h"
#include "onnx/validity/validity.h"

namespace paddle::exporter {
namespace {

using formats::onnx::Graph;
using formats::onnx::Model;
using formats::onnx::ValueInfo;

void fix_dims(const ExportJob& job, ValueInfo& info) {
  if (!info.type.shape) return;
  for (Dim& dim : *info.type.shape)
    dim = dim.substitute([&](const std::string& symbol) -> std::optional<Dim> {
      const auto size = job.dims.find(symbol);
      return size == job.dims.end() ? std::nullopt : std::optional(Dim(size->second));
    });
}

/// Names that inputs use for sizes which are not known are not those of the file.
Model copied(const ExportJob& job) {
  Model out = formats::onnx::read_model(job.model);
  std::vector<std::string> symbols;
  for (const ValueInfo& input : out.graph.inputs)
    if (input.type.shape)
      for (const Dim& dim : *input.type.shape) dim.collect_symbols(symbols);
  for (const auto& [name, size] : job.dims)
    if (std::ranges::count(symbols, name) == 0)
      fail(ErrorCode::kUsage, "--dim ", name, ": the model has no such dim",
           did_you_mean(name, symbols), symbols.empty() ? "" : "; it has ", join(symbols, ", "));
  for (auto* list : {&out.graph.inputs, &out.graph.outputs, &out.graph.values})
    for (ValueInfo& info : *list) fix_dims(job, info);
  if (out.graph.name.empty()) out.graph.name = "model";
  out.producer = job.producer;
  out.metadata = job.metadata;
  if (!job.labels.empty())
    out.metadata.emplace_back("labels", nlohmann::ordered_json(job.labels).dump());
  return out;
}

int64_t count_copied_nodes(const Graph& graph, std::map<std::string, int64_t>& operators) {
  int64_t count = 0;
  for (const auto& node : graph.nodes) {
    ++count;
    ++operators[node.op_type];
    for (const auto& attribute : node.attributes)
      for (const auto& inner : attribute.graphs) count += count_copied_nodes(*inner, operators);
  }
  return count;
}

std::vector<CheckResult> check_copy(const ExportJob& job, const std::string& path,
                                    const std::function<void(const std::string&)>& note) {
  const auto source = program::load_model(job.model, job.load);
  const auto file = open_exported(job, path);
  std::vector<CheckResult> out;
  for (int64_t binding = 0; binding < job.checks; ++binding) {
    CheckResult result;
    std::string rejection;
    const auto reference = run_on_samples(*source, job.dims, binding, &rejection);
    if (!reference) {
      note(
          str("the model takes none of the inputs that were tried, so the file is not compared "
              "with it (--dim NAME=SIZE fixes a size): ",
              rejection));
      out.push_back(result);
      break;
    }
    result.ran = true;
    result.dims = reference->sizes;
    const auto& found = file->run(reference->inputs);
    // Another runtime rounds otherwise.
    const double allowed = job.check_with_onnxruntime ? 1e-3 : 0;
    for (size_t i = 0; i < reference->outputs.size() && result.difference.empty(); ++i) {
      const Array& expected = reference->outputs[i];
      const std::string bad =
          inspect::difference(found.at(i), expected, {allowed, allowed * largest_of(expected)});
      if (!bad.empty()) result.difference = "'" + source->outputs()[i] + "': " + bad;
    }
    out.push_back(result);
    if (free_symbols(*source).empty()) break;
  }
  return out;
}

}  // namespace

bool can_be_copied(const ExportJob& job) {
  return job.model.ends_with(".onnx") && !job.training && !job.preprocess && !job.low &&
         job.functions.empty() && job.format == onnx::QuantizedFormat::kQdq &&
         job.load.weights.empty() && job.load.overrides.empty();
}

ExportResult export_copy(const ExportJob& job, const Error& why,
                         const std::function<void(const std::string&)>& note) {
  const Model model = copied(job);
  ExportResult result;
  const auto opset = model.opsets.find("");
  result.opset = opset == model.opsets.end() ? 0 : opset->second;
  const bool other_opset = (job.opset != 0 && job.opset != result.opset) ||
                           (job.most_opset != 0 && result.opset > job.most_opset);
  if (other_opset || !model.graph.sparse_initializers.empty()) throw why;
  note(str("the graph is written as it is, node by node: ", why.message()));
  result.nodes = count_copied_nodes(model.graph, result.operations);
  // Operators of other opsets than the schemas have are those of the source.
  if (result.opset >= 13) onnx::require_valid(model, job.output);
  const std::string path = job.output + ".unchecked.onnx", data = path + ".data";
  const formats::onnx::ModelFile file{&model, path};
  result.written = formats::onnx::write_models({&file, 1}, data, job.write)[0];
  try {
    if (job.checks > 0) result.checks = check_copy(job, path, note);
  } catch (const Error&) {
    remove_model(path);
    throw;
  }
  result.file = job.output + (result.passed() ? "" : ".failed");
  std::error_code error;
  if (!result.written.data_file.empty()) {
    const std::string named = result.file + ".data";
    formats::onnx::write_without_data({&file, 1}, named, job.write);
    std::filesystem::rename(data, named, error);
    result.written.data_file = named;
  }
  if (!error) std::filesystem::rename(path, result.file, error);
  if (error) fail(ErrorCode::kDevice, result.file, ": ", error.message());
  result.written.model_bytes = file_size(result.file);
  write_file_atomically(job.output + ".report.json", report_text(job, result));
  return result;
}

}  // namespace paddle::exporter
