#pragma once
// ONNX Runtime as the reference for exported files, from its shared library, which is opened when
// asked for. Its C interface is a table of functions whose places never change:
// https://onnxruntime.ai/docs/api/c/struct_ort_api.html

#include <memory>
#include <string>
#include <vector>

#include "exporter/export_job.h"
#include "onnx/graph/value.h"

namespace paddle::exporter {

/// An ONNX file that ONNX Runtime runs on the CPU. kUsage if the library is not found
/// (libonnxruntime.so, or what the environment variable PADDLE_ONNXRUNTIME names), kModel if it
/// rejects the file.
std::unique_ptr<program::Model> open_with_onnxruntime(const std::string& file,
                                                      const program::LoadOptions& options);
/// An exported file as the job wants it to be run.
std::unique_ptr<program::Model> open_exported(const ExportJob& job, const std::string& file,
                                              const program::LoadOptions& options = {});

/// Runs a model on values that may be texts; `model` as it was opened here or by load_model.
std::vector<Array> run_values(program::Model& model, const onnx::Values& inputs);

}  // namespace paddle::exporter
