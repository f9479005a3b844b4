#pragma once
// Pruning of layers: zeros in a pattern that keeps 2 of every 4 weights in a row (2:4). Training
// with `train.keep_zeros` keeps them.

#include "quant/quant_job.h"

namespace paddle::quant {

/// Which weights go: the smallest, or those that contribute least, by the size of a weight times
/// the root mean square of the feature that it multiplies (Wanda: Sun et al., 2023).
enum class PruneRule : uint8_t { kMagnitude, kWanda };

struct PruneJob {
  std::string model, output;  ///< output: a folder, or a file that ends in .onnx
  program::LoadOptions load;
  PruneRule rule = PruneRule::kMagnitude;
  std::vector<std::string> match;  ///< patterns of layers; empty: all that can be pruned
  infer::InputOptions calibration, evaluation;
  int64_t samples = 256;
  bool check = true, overwrite = false;
  std::string producer;
};

struct PrunedLayer {
  std::string name, op;
  bool pruned = false;
  std::string why;   ///< it is not pruned
  double zeros = 0;  ///< share of its weights
  double error = 0;  ///< relative size of what was removed
};

struct PruneReport {
  std::vector<PrunedLayer> layers;
  Comparison comparison;
  std::string file;  ///< the model that was written
};

/// kConfig for a pattern that matches no layer; kUsage if there is no data and the rule or the
/// check needs some.
PruneReport prune(const PruneJob& job, const Progress& progress);
/// One line.
std::string prune_json(const PruneJob& job, const PruneReport& report);

}  // namespace paddle::quant
