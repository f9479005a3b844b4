#pragma once
// paddle-quant: calibrates, quantizes, compares with the float model, times both, and writes the
// result with a report. A model that the user's terms do not accept goes to `best/`.

#include <map>
#include <string>
#include <vector>

#include "onnx/export/quantized_format.h"
#include "quant/compare.h"
#include "quant/layers.h"
#include "quant/progress.h"
#include "quant_common/quant_config.h"

namespace paddle::quant {

struct QuantJob {
  std::string model, output;  ///< output: a folder, or a file that ends in .onnx
  program::LoadOptions load;
  /// Symbolic dims that the ONNX file fixes; a model may ask for their values (`static(dim)`).
  std::map<std::string, int64_t> dims;
  QuantConfig config;
  infer::InputOptions calibration;  ///< where samples come from; the run's training data by default
  infer::InputOptions evaluation;   ///< the run's validation data by default, else calibration
  bool check = true;                ///< compares and times the result
  bool write_anyway = false;        ///< a model that is not accepted is written in its place
  bool overwrite = false;
  /// Seconds: after them, what is left to choose or to time is left out, and the model is written.
  std::optional<double> time_limit;
  /// Continues an interrupted job: with its statistics, decisions and trials.
  bool resume = false;
  onnx::QuantizedFormat format = onnx::QuantizedFormat::kQdq;  ///< of the ONNX file
  std::string producer;
};

struct QuantReport {
  std::vector<Layer> layers;
  Comparison comparison;
  bool checked = true;
  int64_t calibration_samples = 0;
  int64_t float_bytes = 0, quantized_bytes = 0;
  bool accepted = true;
  std::string reason;       ///< why not
  double accuracy_gap = 0;  ///< how far the result is from what is accepted; 0 if it is
  int64_t trials = 0;       ///< models that a search has compared
  std::string onnx_file, model_folder;
  std::vector<std::string> warnings;
  int64_t quantized_layers() const;
};

/// The layers and what happens to them, without reading data.
std::vector<Layer> plan_layers(const QuantJob& job);
/// `progress` gets each stage and its steps. Interrupted (interruption.h) leaves what `resume`
/// continues.
QuantReport run_quantization(const QuantJob& job, const Progress& progress);

/// Only calibrates, and writes the statistics to `output`. Returns the number of samples. When it
/// is interrupted, `output`.begun has the statistics of the samples so far.
int64_t run_calibration(const QuantJob& job, const std::string& output, const Progress& progress);

/// The layers, in the order of execution, with their sensitivities: by the noise of the output on
/// one batch, or by gradients of the loss on the calibration data.
std::vector<Layer> run_sensitivity(const QuantJob& job, Sensitivity by, const Progress& progress);

}  // namespace paddle::quant
