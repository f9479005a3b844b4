#pragma once
// A step of training as one ONNX graph: forward, loss, gradients and updates. Parameters and the
// states of model and optimizer are inputs with their first values as defaults, and outputs
// `NAME.next`; the caller feeds the outputs of one step to the next one.

#include "exporter/export_job.h"

namespace paddle::exporter {

/// How the operations of the config's step are exported, without writing anything.
std::vector<OperationForm> list_training_operations(const ExportJob& job);
/// Exports the step of the config `job.model`. The check runs the first steps of the run with both.
/// kUsage for a config whose step is not one function (accumulation, several ranks).
ExportResult run_training_export(const ExportJob& job,
                                 const std::function<void(const std::string&)>& note);

}  // namespace paddle::exporter
