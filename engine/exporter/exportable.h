#pragma once
// The part of an export that models and training steps share: from a function to a checked file.

#include "exporter/export_job.h"

namespace paddle::exporter {

struct Exportable {
  std::string name;
  const ir::Function& function;
  onnx::WeightLookup weight;
  std::vector<std::pair<std::string, std::string>> metadata;
  /// Runs a written file; called if the job asks for checks.
  std::function<std::vector<CheckResult>(const std::string& file, const onnx::ExportedModel&)>
      check;
  /// Changes the graph before it is written, if set; needs `least_opset` for it.
  std::function<void(onnx::ExportedModel&)> finish = {};
  int64_t least_opset = 17;
  std::string least_opset_reason = {};
};

/// How each operation of a function is exported.
std::vector<OperationForm> forms_of(const ir::Function& function);
/// kUsage if the output is there and must not be replaced.
void require_new_output(const ExportJob& job);
/// Writes the file under another name, checks it and gives it its name, or FILE.failed.
ExportResult export_checked(const ExportJob& job, const Exportable& source);

}  // namespace paddle::exporter
