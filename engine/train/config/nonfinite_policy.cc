#include "train/config/nonfinite_policy.h"

namespace paddle::train {

void read_nonfinite_policy(const config::Section& train, RunConfig& config,
                           config::Diagnostics& diagnostics) {
  const std::string& name = train.text("on_nonfinite");
  config.on_nonfinite = name == "skip"       ? NonFinitePolicy::kSkip
                        : name == "rollback" ? NonFinitePolicy::kRollback
                                             : NonFinitePolicy::kStop;
  const auto reject = [&](const std::string& with) {
    diagnostics.add(ErrorCode::kConfig,
                    str("train.on_nonfinite: ", name, " is not possible with ", with),
                    train.location("on_nonfinite"));
  };
  if (config.on_nonfinite == NonFinitePolicy::kStop) return;
  if (config.on_nonfinite == NonFinitePolicy::kRollback) {
    if (config.parallel.ranks() > 1) reject("several ranks");
    if (config.checkpoint.steps + config.checkpoint.epochs == 0)
      reject("train.checkpoint_every: never");
    return;
  }
  if (config.mixed && config.mixed->scaling)
    reject("precision: float16, which skips updates itself");
  if (!config.optimizers.empty() && !config.optimizers[0].name.empty()) reject("'optimizers'");
  if (!config.optimizers.empty() && config.optimizers[0].options.rule.kind &&
      config.optimizers[0].options.rule.kind->is_minimizer)
    reject("optimizer: lbfgs");
  if (config.accumulate > 1) reject("train.accumulate");
}

}  // namespace paddle::train
