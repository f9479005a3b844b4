#pragma once
// The metrics of the config that a trained model comes with, built in or written in the model
// language, and its loss: for the float model and for a quantized one.

#include <memory>
#include <string>
#include <vector>

#include "quant/compare.h"
#include "quant_common/quant_config.h"
#include "train/runs/evaluated_model.h"

namespace paddle::quant {

class RunMetrics {
 public:
  /// `model`: a run, a model folder, a checkpoint, or an ONNX file with the config of a run in
  /// `config.run_config`. `data`: the evaluation data. Null where there are no metrics to
  /// compute, with the reason. kConfig for a limit on a metric that the config does not have, or
  /// whose better direction is not stated.
  static std::unique_ptr<RunMetrics> open(const std::string& model, const QuantConfig& config,
                                          const infer::InputOptions& data, std::string& reason);

  /// Both values of the loss and of each metric, with half of the 95% interval of the paired
  /// difference where the samples suffice: delete-a-group jackknife over equal groups of samples.
  /// Interrupted after a signal.
  std::vector<Metric> compare(const std::string& onnx_file);

 private:
  RunMetrics() = default;
  void check(const MetricLimit& limit) const;

  std::string model_, config_file_, data_;
  std::vector<Metric> infos_;  ///< names and directions, the loss first
  std::optional<train::LogLine> float_;
};

}  // namespace paddle::quant
