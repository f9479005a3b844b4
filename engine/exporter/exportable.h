#pragma once
// The part of an export that models and training steps share: from a function to a checked file.

#include <span>

#include "exporter/export_job.h"

namespace paddle::exporter {

struct Exportable {
  std::string output;  ///< the file to write
  std::string name;
  const ir::Function& function;
  onnx::WeightLookup weight;
  std::vector<std::pair<std::string, std::string>> metadata;
  /// Runs a written file; called if the job asks for checks.
  std::function<std::vector<CheckResult>(const std::string& file, const onnx::ExportedModel&)>
      check;
  /// Changes the graph before it is written, if set; needs `least_opset` for it.
  std::function<void(onnx::ExportedModel&)> finish = {};
  int64_t least_opset = 0;
  std::string least_opset_reason = {};
};

/// The report next to a file, as JSON.
std::string report_text(const ExportJob& job, const ExportResult& result);
/// How each operation of a function is exported.
std::vector<OperationForm> forms_of(const ir::Function& function);
/// kUsage if one of the outputs is there and must not be replaced.
void require_new_outputs(const ExportJob& job, const std::vector<std::string>& outputs);
/// Writes files under other names, checks them and gives them their names when all have passed, or
/// FILE.failed. Several share the external data file of the job's output.
std::vector<ExportResult> export_checked(const ExportJob& job, std::span<const Exportable> sources);

}  // namespace paddle::exporter
