#pragma once
// Where a training run first gets NaN or infinity: the steps after its last checkpoint are
// repeated, and the one that fails is computed again operation by operation.

#include <cstdint>
#include <optional>
#include <string>

#include "base/error.h"
#include "train/job/trainer.h"
#include "train/session/nonfinite.h"

namespace paddle::train {

struct NonFiniteSearch {
  std::optional<NonFiniteOrigin> origin;
  int64_t step = 0;          ///< of the origin, or the last that was repeated
  bool was_stopped = false;  ///< by the limit or a signal
};

/// Repeats the run of this config in the folder `run` from its newest checkpoint, or from its
/// start, up to `last_step` (0: the last one), and looks for the first operation that makes values
/// that are not finite of values that are. Writes nothing; ends after `max_seconds` (0: never).
/// kUsage for runs of several ranks.
NonFiniteSearch find_nonfinite(const std::string& run, RunConfig config, int64_t last_step,
                               double max_seconds, const TrainOptions& options,
                               TrainObserver& observer);

/// "'log' at model.yaml:14:7 gave the first NaN (12 of 64 elements)".
std::string text(const NonFiniteOrigin& origin);

}  // namespace paddle::train
