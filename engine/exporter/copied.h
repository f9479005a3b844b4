#pragma once
// ONNX files and programs whose graph is not one function: where its course depends on the data, or
// an operator has no counterpart among the operations, the graph is written as it is.

#include <functional>
#include <string>

#include "base/error.h"
#include "exporter/export_job.h"

namespace paddle::exporter {

/// Whether a job may be done so: nothing in it changes operations.
bool can_be_copied(const ExportJob& job);
/// Writes the graph with the job's dims and metadata, runs it and its source and compares all
/// values. `why` is the error of the ordinary way, which is thrown where the graph cannot be copied
/// either: at another opset than the one that was asked for, or newer than the target reads.
ExportResult export_copy(const ExportJob& job, const Error& why,
                         const std::function<void(const std::string&)>& note);

}  // namespace paddle::exporter
