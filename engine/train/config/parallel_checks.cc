#include "train/config/parallel_checks.h"

namespace paddle::train {

void check_parallel(const RunConfig& config, config::Diagnostics& diagnostics) {
  const auto reject = [&](const char* message) {
    diagnostics.add(ErrorCode::kConfig, message, config.parallel.where);
  };
  // A range follows from the micro-batch before, in whose turn the stages differ.
  if (config.quantization && config.parallel.pipeline > 1)
    reject(
        "parallel.pipeline: is not possible with quant.train, whose ranges of inputs follow "
        "from one micro-batch to the next");
  if (config.parallel.sharding == 0 && config.parallel.tensor <= 1) return;
  for (const OptimizerConfig& optimizer : config.optimizers)
    if (optimizer.options.rule.kind->needs_whole_parameters)
      reject(
          "parallel: this optimizer needs whole parameters, so that sharding must be 0 and "
          "tensor 1");
  if (config.average || config.swa)
    reject(
        "parallel: train.ema and train.swa need whole parameters, so that sharding must be 0 "
        "and tensor 1");
}

}  // namespace paddle::train
