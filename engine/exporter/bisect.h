#pragma once
// Finds the first value of an exported file that differs from what the model computes.

#include <functional>
#include <map>
#include <optional>
#include <string>

#include "inspect/compare.h"
#include "onnx/export/export.h"
#include "program/model.h"

namespace paddle::exporter {

struct NodeDifference {
  std::string node, op_type;
  std::string source;      ///< the line of the model, if it is known
  std::string value;       ///< name in the file
  std::string difference;  ///< found by the file, expected of the model
  std::string text() const;
};

/// The tolerance for an expected array.
using ToleranceFor = std::function<inspect::Tolerance(const Array& expected)>;

/// Opens an ONNX file to be run.
using OpenFile = std::function<std::unique_ptr<program::Model>(const std::string& path)>;

/// Evaluates the written function operation by operation, runs the file with all values as outputs,
/// and compares them in order. `inputs` by the names of the function's ports. A file for the run is
/// written to `scratch` and removed. nullopt if all values agree.
std::optional<NodeDifference> first_difference(const onnx::ExportedModel& exported,
                                               const onnx::WeightLookup& weights,
                                               const std::map<std::string, Array>& inputs,
                                               const ToleranceFor& tolerance, const OpenFile& open,
                                               const std::string& scratch,
                                               std::optional<DType> low = {});

}  // namespace paddle::exporter
