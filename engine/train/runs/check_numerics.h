#pragma once
// NaN, infinities, zeros and the largest magnitude of all values of one training step, by layer.

#include <cstdint>
#include <string>
#include <vector>

#include "infer/numerics.h"
#include "train/job/trainer.h"

namespace paddle::train {

/// The values of one layer, in the forward pass or among the gradients and updates.
struct LayerNumerics {
  std::string layer;  ///< path, or the place of operations outside of layers; "" for fields
  bool gradient = false;
  int64_t values = 0;        ///< results of operations
  infer::Numerics numerics;  ///< of all of them
  std::string largest_in;    ///< the operation with the largest magnitude
};

struct StepNumerics {
  int64_t step = 0;
  std::vector<LayerNumerics> layers;  ///< in the order of the computation
};

/// Computes one step operation by operation: the first of the config, or with a run folder `run`
/// the one after its newest checkpoint. Writes nothing. kUsage for runs of several ranks.
StepNumerics check_numerics(const std::string& run, RunConfig config, const TrainOptions& options,
                            TrainObserver& observer);

}  // namespace paddle::train
