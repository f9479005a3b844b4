#pragma once
// Ranges of the inputs of layers, from samples or from a file of statistics.

#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include "infer/batches.h"
#include "program/model.h"
#include "quant/moments.h"
#include "quant/progress.h"
#include "quant_common/quant_config.h"

namespace paddle::quant {

/// The samples that calibration reads, always the same ones in the same order.
class CalibrationData {
 public:
  using Deadline = std::optional<std::chrono::steady_clock::time_point>;
  /// After the deadline a reading ends with the batch at hand.
  CalibrationData(const program::Model& model, infer::InputOptions options, int64_t samples,
                  Deadline deadline = {});
  /// Calls `use` with the inputs of each batch and the number of samples up to its end; batches
  /// within the first `begin` samples are left out. Returns the number of samples; kData if none.
  int64_t for_each(const std::function<void(const std::vector<Array>&, int64_t)>& use,
                   int64_t begin = 0);
  int64_t for_each(const std::function<void(const std::vector<Array>&)>& use);
  /// The most samples that are read; the data may have fewer.
  int64_t most_samples() const { return samples_; }
  /// Of the last reading: one line each.
  const std::vector<std::string>& warnings() const { return warnings_; }

 private:
  const program::Model& model_;
  infer::InputOptions options_;
  int64_t samples_;
  Deadline deadline_;
  std::vector<std::string> warnings_;
};

bool is_past(const CalibrationData::Deadline& deadline);

struct Statistics {
  /// For each layer one for each of its inputs; empty for layers that need none.
  std::vector<std::vector<Observer>> inputs;
  /// For each layer, of its result if that is rounded.
  std::vector<Observer> results;
  int64_t samples = 0;
};

/// Statistics of the inputs of all quantized layers with static activations. kData if an input is
/// not finite. The file `begun` keeps, every ten seconds and when Interrupted is thrown, those of
/// the samples so far; they are read from it if it is there.
Statistics collect_statistics(const Quantizable& model, CalibrationData& data,
                              const WeightSource& weight, const Progress& progress,
                              const std::string& begun = "");
/// The largest magnitude of each feature of the inputs of these layers; empty for others.
std::vector<std::vector<float>> largest_features(const Quantizable& model,
                                                 const std::vector<size_t>& layers,
                                                 CalibrationData& data, const WeightSource& weight);

/// Identifies the weights and layers that statistics belong to.
std::string fingerprint(const Quantizable& model);
void write_statistics(const std::string& path, const Quantizable& model,
                      const Statistics& statistics);
/// Nullopt, with a reason, if the file belongs to another model; kModel if it is damaged.
std::optional<Statistics> read_statistics(const std::string& path, const Quantizable& model,
                                          std::string& reason);

}  // namespace paddle::quant
