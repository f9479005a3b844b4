#pragma once
// paddle-quant: calibrates, quantizes, compares with the float model, times both, and writes the
// result with a report.

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "infer/batches.h"
#include "program/model.h"
#include "quant/quantize.h"

namespace paddle::quant {

struct QuantJob {
  std::string model, output;  ///< output: a folder, or a file that ends in .onnx
  program::LoadOptions load;
  infer::InputOptions calibration;  ///< where samples come from; the run's training data by default
  infer::InputOptions evaluation;   ///< the run's validation data by default, else calibration
  int64_t samples = 256;            ///< for calibration
  RangeMethod method = RangeMethod::kMinMax;
  std::string method_name = "min_max";
  double percentile = 99.99;
  std::vector<std::string> keep_float;  ///< patterns of layer names
  std::optional<double> max_drop;       ///< of the metric, as a share of 1
  bool overwrite = false;
  std::string producer;
};

/// A value for both models; confidence95 is half of the interval of the paired difference.
struct Metric {
  std::string name;
  double float_value = 0, quantized = 0;
  std::optional<double> confidence95;
};

struct QuantReport {
  std::vector<Layer> layers;
  std::vector<Metric> metrics;
  int64_t calibration_samples = 0, evaluation_samples = 0;
  double float_ms = 0, quantized_ms = 0;
  int64_t float_bytes = 0, quantized_bytes = 0;
  bool accepted = true;
  std::string reason;  ///< why not
  std::string onnx_file, model_folder;
  std::vector<std::string> warnings;
  int64_t quantized_layers() const;
};

/// The layers and what happens to them, without reading data.
std::vector<Layer> plan_layers(const QuantJob& job);
/// `progress` gets one line a stage.
QuantReport run_quantization(const QuantJob& job,
                             const std::function<void(const std::string&)>& progress);
/// report.json as the contract has it.
std::string report_json(const QuantJob& job, const QuantReport& report);

}  // namespace paddle::quant
