#pragma once
// The mean of the weights of a run's last checkpoints, as a model folder.

#include <cstdint>
#include <string>
#include <vector>

namespace paddle::train {

/// The steps whose weights were averaged, ascending.
///
/// Floating tensors of the `last` newest checkpoints of `run` are averaged in float64; others are
/// those of the newest. `output` becomes a copy of the run's model/ with these weights. kUsage for
/// a run with fewer checkpoints, without model/, or if `output` exists and is
/// no model folder that may be overwritten; kModel for checkpoints
/// whose tensors are not those of model/ (adapters, several models).
/// With `dry_run` everything is checked and nothing is written.
std::vector<int64_t> average_checkpoints(const std::string& run, int64_t last,
                                         const std::string& output, bool dry_run = false,
                                         bool overwrite = false);

}  // namespace paddle::train
