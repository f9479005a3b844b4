// Runs of several ranks: what they agree on, and what is said about their parts.

#include <bit>
#include <cmath>

#include "base/files.h"
#include "base/interrupt.h"
#include "train/averages.h"
#include "train/trainer_impl.h"

namespace paddle::train {

int Trainer::Impl::stop_signal() {
  if (stopped_by_ == 0) stopped_by_ = static_cast<int>(peers_->max(pending_interrupt()));
  return stopped_by_;
}

void Trainer::Impl::compare_ranks() {
  if (peers_->size() == 1) return;
  const std::string config = config::dump_yaml(config_.document);
  const uint32_t digest = crc32(std::as_bytes(std::span(config.data(), config.size())));
  const std::vector<int64_t> configs = peers_->gather_numbers(digest);
  const std::vector<int64_t> models = peers_->gather_numbers(session_->forward_digest());
  for (size_t rank = 1; rank < configs.size(); ++rank) {
    if (configs[rank] != configs[0])
      fail(ErrorCode::kConfig, "rank ", rank,
           " was started with another config than rank 0; all ranks need the same one");
    if (models[rank] != models[0])
      fail(ErrorCode::kConfig, "rank ", rank,
           " has another model than rank 0; all ranks need the same files and the same program");
  }
}

void Trainer::Impl::report_partition() {
  for (const partition::Gathered& g : session_->gathered()) {
    if (g.has_rule && !options_.dry_run) continue;  // as the layout has it
    const std::string at = g.location.empty() ? "" : " at " + g.location;
    const std::string size = str(g.type, " (", human_bytes(static_cast<uint64_t>(g.bytes)), ")");
    observer_.note(g.has_rule
                       ? str("parallel: ", g.operation, at, " gathers ", size,
                             " on each rank: it cannot work on parts of it")
                       : str("parallel: ", g.operation, at, " has no partition rule: it gathers ",
                             size, " and runs whole on each rank"));
  }
}

std::vector<std::string> Trainer::Impl::placement_lines() const {
  std::vector<std::string> lines = session_->pipeline_lines();
  for (const auto& [name, parameter] : store_.parameters) {
    const auto it = session_->placements().find(name);
    if (it != session_->placements().end() && !it->second.empty())
      lines.push_back("split: " + name + "  " +
                      partition::text(it->second, parameter.value.shape, config_.parallel.mesh()));
  }
  if (!session_->communication_summary().empty())
    lines.push_back(session_->communication_summary());
  return lines;
}

bool Trainer::Impl::restore() {
  int64_t step = -1;
  if (peers_->is_root()) {
    const auto restored = folder_.restore(
        store_, config_.document, [&](const std::string& line) { observer_.note(line); },
        [&](const std::string& line) { observer_.warn(line); });
    if (restored) {
      step = restored->state.step;
      state_ = restored->state;
      check_record(restored->changes);
    }
  }
  peers_->broadcast(std::as_writable_bytes(std::span(&step, 1)));
  if (step < 0) return false;
  if (!peers_->is_root())
    state_ = program::read_checkpoint(folder_.checkpoints() + "/" + std::to_string(step), store_);
  swap_averages(store_);
  // The best so far may have been forgotten.
  double best = state_.best.value_or(std::nan(""));
  peers_->broadcast(std::as_writable_bytes(std::span(&best, 1)));
  peers_->broadcast(std::as_writable_bytes(std::span(&state_.best_step, 1)));
  state_.best = std::isnan(best) ? std::nullopt : std::optional(best);
  peers_->broadcast(std::as_writable_bytes(std::span(&other_metrics_, 1)));
  if (other_metrics_ == 0) return true;
  state_.early_stop = {};
  for (program::Watch& watch : state_.plateaus) watch = {.factor = watch.factor};
  return true;
}

}  // namespace paddle::train
