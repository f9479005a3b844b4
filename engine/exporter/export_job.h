#pragma once
// paddle-export: writes a model as an ONNX file, runs the file on several bindings of its symbolic
// dims and compares it with its source before it takes its place.

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "formats/onnx/write.h"
#include "onnx/export/export.h"
#include "program/model.h"

namespace paddle::exporter {

struct ExportJob {
  std::string model, output;
  /// Entries of the model to export; of several, NAME goes to `output` with .NAME before its
  /// ending, and they share one external data file. Empty: the one of `load`.
  std::vector<std::string> functions;
  program::LoadOptions load;
  int64_t opset = 0;  ///< 0: the lowest that fits
  /// The newest opset that the runtime `target` reads; 0: any.
  int64_t most_opset = 0;
  std::string target;
  onnx::QuantizedFormat format = onnx::QuantizedFormat::kQdq;
  std::map<std::string, int64_t> dims;
  formats::onnx::WriteOptions write;
  std::vector<std::string> labels;
  std::vector<std::pair<std::string, std::string>> metadata;
  int checks = 3;                       ///< bindings to compare on; 0: none
  bool check_with_onnxruntime = false;  ///< files are run by it, not by our own runtime
  bool overwrite = false;
  std::optional<DType> low;             ///< 16-bit type of computation and weights
  std::vector<std::string> keep_float;  ///< patterns of operations and parameters without it
  bool preprocess = false;              ///< the transforms of the run are part of the graph
  bool training = false;  ///< `model` is a config of training; a step of it is exported
  std::string producer;
};

/// How the operations of a model are exported.
struct OperationForm {
  std::string operation, form, note, source;
  int64_t count = 0;
};

struct CheckResult {
  std::map<std::string, int64_t> dims;
  bool ran = false;
  std::string difference;    ///< "" if the outputs agree
  std::string node;          ///< of a difference: the first node of the file that differs
  double largest_error = 0;  ///< relative to the tolerance
};

struct ExportResult {
  std::string file;  ///< what was written; FILE.failed if a check failed
  formats::onnx::WrittenModel written;
  std::string tables;  ///< the folder with tables that are inputs; "" if there is none
  int64_t opset = 0, nodes = 0;
  std::string opset_reason;
  int64_t quantized_layers = 0;  ///< that have another form than QDQ
  std::map<std::string, int64_t> operations;
  std::vector<CheckResult> checks;
  bool passed() const;
};

/// How each operation of the model is exported, without writing anything.
std::vector<OperationForm> list_operations(const ExportJob& job);
/// The same of all operations, without counts.
std::vector<OperationForm> list_all_operations();
/// Exports each function, writes FILE.report.json next to the file, and checks. Throws kModel with
/// all operations that have no ONNX form as notes.
std::vector<ExportResult> run_export(const ExportJob& job,
                                     const std::function<void(const std::string&)>& note);

}  // namespace paddle::exporter
