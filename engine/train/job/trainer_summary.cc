// The lines that describe a run before its first step.

#include <fmt/core.h>

#include <algorithm>

#include "base/parallel.h"
#include "train/job/trainer_impl.h"

namespace paddle::train {
namespace {

/// "learning rate 0.001: 0 at the first update, …".
std::string rates_of(const OptimizerConfig& optimizer, int64_t total) {
  const auto rate = [&](int64_t step) {
    return fmt::format(
        "{:.3g}", optimizer.options.lr * optim::schedule_factor(optimizer.schedule, step, total));
  };
  const std::string name = optimizer.name.empty() ? "" : optimizer.name + ": ";
  std::string line = name + "learning rate " + format_double(optimizer.options.lr);
  if (optimizer.rate_factor != 1)
    line += str(" (", format_double(optimizer.rate_factor), " times ",
                optimizer.name.empty() ? "optimizer" : "optimizers." + optimizer.name,
                ".lr for this batch)");
  if (total > 0)
    line += str(": ", rate(0), " at the first update, ", rate(total / 2), " half-way, ",
                rate(total - 1), " at the last");
  return line;
}

}  // namespace

std::vector<std::string> Trainer::Impl::run_summary() const {
  std::vector<std::string> lines;
  const int64_t batch = config_.data.loader.batch_size, total = total_steps();
  lines.push_back(str("batch ", batch,
                      config_.accumulate > 1 ? str(" = ", config_.accumulate, " micro-batches of ",
                                                   batch / config_.accumulate)
                                             : "",
                      "; gradients are averaged over the samples of each batch"));
  lines.push_back(str(total == kEndless ? "no limit of" : std::to_string(total), " updates, ",
                      loader_->batches_per_epoch(), " per epoch of ", loader_->samples_per_epoch(),
                      " samples"));
  for (const OptimizerConfig& optimizer : config_.optimizers)
    lines.push_back(rates_of(optimizer, total));
  for (std::string& line : session_->tables().summary()) lines.push_back(std::move(line));
  if (config_.mixed) {
    const auto& mixed = *config_.mixed;
    std::string line = str("mixed precision in ", text(mixed.cast.low), ", level ",
                           mixed.cast.all_low ? "O2" : "O1");
    if (mixed.cast.all_low) {
      const auto kept = std::count_if(store_.parameters.begin(), store_.parameters.end(),
                                      [&](const auto& p) { return store_.master(p.first); });
      line += str(": ", kept, " of ", store_.parameters.size(),
                  " parameters in 16 bits with float32 masters");
    }
    if (mixed.scaling)
      line += str("; loss scale ", format_double(mixed.scaling->initial),
                  mixed.scaling->dynamic ? ", dynamic" : "");
    lines.push_back(line);
  }
  if (communicator_->size() > 1) {
    const auto split = std::count_if(
        store_.parameters.begin(), store_.parameters.end(), [&](const auto& parameter) {
          return !session_->shards().placement_of(parameter.first).empty();
        });
    lines.push_back(str(communicator_->size(), " ranks: ", config_.parallel.mesh().text(), "; ",
                        split, " of ", store_.parameters.size(), " parameters are split"));
  }
  lines.push_back(str("seed ", config_.seed, "; ", thread_count(), " threads of ",
                      available_cores(), " cores; ", config_.data.loader.workers,
                      config_.data.loader.workers == 1 ? " loader worker" : " loader workers"));
  return lines;
}

}  // namespace paddle::train
