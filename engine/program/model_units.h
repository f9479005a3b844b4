#pragma once
// The units of a trained model's inputs and outputs. A run scales and transforms its data;
// predictions with its model take and return numbers in the units of the data files. Used by
// paddle-infer, metrics, ONNX files with preprocessing, the C++ and C libraries.

#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "data/data_config.h"
#include "data/target_scale.h"
#include "program/model.h"

namespace paddle::program {

/// The section `data` of the run's config; nullopt for other models.
std::optional<data::DataConfig> run_data(const ModelMetadata& metadata);
/// The values that the run fitted. Models without `fitted.json` have them in their config.
std::vector<data::Fitted> fitted_of(const ModelMetadata& metadata,
                                    const std::optional<data::DataConfig>& run);

/// The conversion of the numbers of an output, or of a column of it.
struct ScaledOutput {
  size_t output = 0;
  OutputUnit unit;
  data::TargetScale scale;
  /// A number of the model in the units of the files. `column` is that of the field.
  double restored(double value, size_t column) const;
  /// The same as x * first + second; on a logarithmic scale the first step of it.
  std::pair<double, double> linear(size_t column) const;
  /// The column of the field for a place on the output's last axis of this size; nullopt where the
  /// place has other units or the sizes do not fit.
  std::optional<size_t> column_of(int64_t place, int64_t size) const;
};

/// Brings outputs to the units of the data files.
class OutputUnits {
 public:
  explicit OutputUnits(const Model& model) : OutputUnits(model.metadata(), model.outputs()) {}
  OutputUnits(const ModelMetadata& metadata, const std::vector<std::string>& outputs);
  bool is_identity() const { return scales_.empty(); }
  /// Copies where an output is scaled.
  std::vector<Array> restored(const std::vector<Array>& outputs) const;
  /// Of outputs that stay in other units than their field: a line each.
  const std::vector<std::string>& warnings() const { return warnings_; }
  const std::vector<ScaledOutput>& scales() const { return scales_; }

 private:
  std::vector<ScaledOutput> scales_;
  std::vector<std::string> warnings_;
};

/// Brings arrays from the units of the data files to what the model takes.
class InputUnits {
 public:
  explicit InputUnits(const Model& model, std::vector<std::string> without = {});
  /// Whether arrays of these types (by name; nullopt where there is none) are raw data and not what
  /// the model takes: those of models that were trained on arrays or on scaled columns, and those
  /// of other types than the model's where the run has transforms.
  bool are_raw(const std::function<std::optional<DType>(const std::string&)>& dtype_of) const;
  /// Of the inputs, in the order of the run.
  const std::vector<data::Fitted>& scales() const { return scales_; }
  const std::vector<data::TransformOptions>& transforms() const { return transforms_; }
  /// One array per input of the model, [rows, …] in the units of the files.
  std::vector<Array> prepared(const std::vector<Array>& inputs) const;

 private:
  std::vector<std::pair<std::string, DType>> inputs_;
  std::vector<data::Fitted> scales_;
  std::vector<data::TransformOptions> transforms_;
  bool from_arrays_ = false;
};

}  // namespace paddle::program
