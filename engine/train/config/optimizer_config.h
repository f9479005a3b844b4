#pragma once
// The sections `optimizer:` and `optimizers:` of a training config.

#include <string>
#include <vector>

#include "config/schema.h"
#include "optim/optimizer.h"
#include "optim/schedule.h"

namespace paddle::train {

/// `optimizer:`, or one of `optimizers:`.
struct OptimizerConfig {
  std::string name;  ///< "" for `optimizer:`
  optim::OptimizerOptions options;
  double rate_factor = 1;  ///< what base_batch multiplied the rates by; they include it
  optim::Schedule schedule;
};

config::Spec optimizer_spec();
/// An entry of `optimizers:`, which may have a schedule of its own.
config::Spec named_optimizer_spec();

/// `optimizer:` or `optimizers:`, with the schedule of each.
std::vector<OptimizerConfig> read_optimizers(const config::Section& section,
                                             config::Diagnostics& diagnostics);
/// The rates of an optimizer that states them for another batch than the config's.
void scale_rates(const config::Section& section, int64_t batch_size, OptimizerConfig& optimizer);

}  // namespace paddle::train
