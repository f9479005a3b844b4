#pragma once
// Whether a quantized model is what the user accepts (`accept:`).

#include "quant/quant_job.h"
#include "quant/run_metrics.h"

namespace paddle::quant {

/// `quant.accept.latency`, without its `speedup`.
struct LatencyTerms {
  int64_t batch = 1;                   ///< samples at a time
  std::optional<double> milliseconds;  ///< most
};
/// Of a resolved configuration.
LatencyTerms read_latency(const config::Node& document);

/// Compares quantized models with the float one, and checks the limits of `accept`.
class AcceptanceCheck {
 public:
  /// `job` has settled data and outlives this object. kConfig for limits on metrics that the model
  /// does not have.
  explicit AcceptanceCheck(const QuantJob& job);

  /// Runs the float model, the quantized one and the metrics of their config, and fills in
  /// `report.comparison`, whether the model is accepted, and why not. `onnx_file` is the quantized
  /// model. Interrupted after a signal.
  void compare(program::Model& floats, program::Model& quantized, const std::string& onnx_file,
               QuantReport& report);

 private:
  void add_run_metrics(const std::string& onnx_file, QuantReport& report);

  const QuantJob& job_;
  std::unique_ptr<RunMetrics> metrics_;  ///< null: none
};

/// Says how little a comparison on few samples tells.
void warn_of_few(const QuantJob& job, QuantReport& report);

}  // namespace paddle::quant
