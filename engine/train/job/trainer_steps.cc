// The steps of a run: all of them in `run`, or one by one for a caller with a loop of its own.

#include <algorithm>
#include <utility>

#include "base/phase.h"
#include "train/job/trainer_impl.h"

namespace paddle::train {

/// The folder has a report of how the run ended, whatever ends it.
template <class Body>
auto Trainer::Impl::guarded(const Body& body) {
  try {
    return body();
  } catch (const Error& e) {
    communicator_->set_end(comm::FlightEnd::kFailed);
    log_failed();
    write_report(str("Stopped after step ", state_.step, ": ", e.message(), "."));
    throw;
  }
}

TrainResult Trainer::Impl::run() {
  if (options_.benchmark > 0) {
    if (!plan_) prepare();
    plan_->require_fit();
    TrainResult result;
    result.profile = profile_;
    session_->shards().take_parts();
    read_own_rows();
    result.benchmark = benchmark();
    result.stopped_by = stopped_by_;
    return result;
  }
  begin();
  return guarded([&] {
    const Phase phase("training");
    const int64_t total = total_steps();
    if (observer_.wants_steps()) {
      while (const auto report = next_step()) observer_.step(*report);
    } else {
      while (state_.step < total && !stop_signal() && !ended_early() && run_step(total, false)) {
      }
    }
    return finish_run();
  });
}

void Trainer::Impl::begin() {
  if (std::exchange(begun_, true)) fail(ErrorCode::kUsage, "the run has begun already");
  claim_folder();
  if (!plan_) prepare();
  plan_->require_fit();
  start_folder();
  keep_flight_record();
  session_->shards().take_parts();
  read_own_rows();
  if (const auto scale = scaling("scale")) {
    last_scale_ = scale->number(0);
    skipped_updates_ = scaling("skipped")->integer(0);
  }
  started_ = window_start_ = last_progress_ = Clock::now();
  begin_publishing();
  guarded([&] {
    if (state_.evaluation_due) run_evaluation();
  });
}

std::optional<StepReport> Trainer::Impl::step() {
  if (!begun_ || ended_)
    fail(ErrorCode::kUsage, "a step of a run that ", begun_ ? "is over" : "has not begun");
  return guarded([&] { return next_step(); });
}

std::optional<StepReport> Trainer::Impl::next_step() {
  const int64_t total = total_steps(), before = state_.step;
  // A batch after which the run goes back to a checkpoint trains nothing.
  while (state_.step < total && !stop_signal() && !ended_early()) {
    if (!run_step(total, true)) break;
    if (state_.step == before) continue;
    StepReport out;
    out.step = state_.step;
    out.epoch = state_.position.epoch;
    out.loss = last_loss_;
    out.learning_rate = learning_rate(state_.step - 1);
    if (last_valid_ && last_valid_->step == state_.step) out.evaluation = last_valid_;
    return out;
  }
  return std::nullopt;
}

std::string Trainer::Impl::save() {
  if (!begun_ || ended_)
    fail(ErrorCode::kUsage, "a checkpoint of a run that ", begun_ ? "is over" : "has not begun");
  return guarded([&] {
    std::string path = checkpoint();
    complete_checkpoint();
    return path;
  });
}

TrainResult Trainer::Impl::finish_steps() {
  if (!begun_ || ended_)
    fail(ErrorCode::kUsage, "the end of a run that ", begun_ ? "is over" : "has not begun");
  return guarded([&] { return finish_run(); });
}

TrainResult Trainer::Impl::finish_run() {
  ended_ = true;
  TrainResult result;
  result.profile = profile_;
  read_losses(0);
  // A limit of time falls anywhere between two evaluations.
  if (!end_reason_.empty() && config_.evaluate.steps + config_.evaluate.epochs > 0 &&
      state_.evaluated_step != state_.step)
    run_evaluation();
  result.steps = state_.step;
  result.stopped_by = stopped_by_;
  finish(result);
  communicator_->set_end(comm::FlightEnd::kDone);
  return result;
}

void Trainer::Impl::announce_next(int64_t total) {
  // Of micro-batches only the step itself knows which ones count.
  if (!session_->tables().are_shared() || config_.accumulate > 1) return;
  const auto [first, last] = session_->tables().steps_to_announce();
  for (int64_t later = first; later <= std::min(last, total - state_.step - 1); ++later) {
    const data::Batch* const batch = loader_->peek(static_cast<size_t>(later - 1));
    if (!batch) return;
    session_->announce({&batch->arrays, 1});
  }
}

void Trainer::Impl::check_table_policies() const {
  const std::vector<std::string> names = session_->tables().paths();
  for (const TablePolicy& each : config_.table_policies)
    if (each.pattern != "*" &&
        std::none_of(names.begin(), names.end(),
                     [&](const std::string& name) { return matches_pattern(each.pattern, name); }))
      throw Error(ErrorCode::kConfig,
                  str("tables: no table (sparse_embedding) matches '", each.pattern, "'",
                      names.empty() ? "; the model has none" : did_you_mean(each.pattern, names)),
                  config_.document.find("tables")->location());
}

void Trainer::Impl::check_watched_table(const std::string& table) const {
  if (!config_.parameter_server.on_servers)
    fail(
        ErrorCode::kUsage,
        "--watch: servers write updates of rows down; expected placement: servers, or --servers N");
  const std::vector<std::string> names = session_->tables().paths();
  if (std::find(names.begin(), names.end(), table) == names.end())
    fail(ErrorCode::kUsage, "--watch: no table '", table, "' in the model",
         names.empty() ? "" : did_you_mean(table, names));
}

void Trainer::Impl::end_table_day() {
  Tables& tables = session_->tables();
  if (!tables.has_days()) return;
  tables.end_day();
  state_.table_day = tables.day();
}

bool Trainer::Impl::run_step(int64_t total, bool reads_loss) {
  const auto before = Clock::now();
  std::optional<comm::ActivityScope> reading(std::in_place, *communicator_, comm::kReadingBatch);
  auto batch = next_batch();
  reading.reset();
  if (!batch) return false;
  const auto loaded = Clock::now();
  announce_next(total);
  started_steps_.emplace_back(state_.step + 1, start_step(*batch));
  // A device computes this step while the host reads the loss of the one before.
  const bool logs = (state_.step + 1) % log_every_ == 0;
  const auto ends = [&](int64_t steps) { return steps > 0 && (state_.step + 1) % steps == 0; };
  const bool waits = reads_loss || !started_steps_.back().second.queued || logs ||
                     ends(config_.evaluate.steps) || ends(config_.checkpoint.steps) ||
                     batch->last_of_epoch || state_.step + 1 == total || config_.digests ||
                     config_.mixed || config_.on_nonfinite != NonFinitePolicy::kStop;
  if (read_losses(waits ? 0 : 1)) {
    state_.position = batch->next;
    loader_->seek(state_.position);
    return true;
  }
  if (batch->last_of_epoch) store_.reset_sequences();
  times_.data += std::chrono::duration<double>(loaded - before).count();
  times_.compute += seconds_since(loaded);
  ++state_.step;
  written_ = false;
  state_.samples += batch->samples;
  state_.position = batch->next;
  window_samples_ += batch->samples;
  write_digests();
  report_progress(logs);
  if (logs) log_train();
  const bool last = state_.step == total;
  if (due(config_.evaluate, batch->last_of_epoch) ||
      (last && (config_.evaluate.steps || config_.evaluate.epochs)))
    run_evaluation();
  if (config_.data.passes && batch->last_of_epoch) end_pass_days(state_.position.epoch);
  if (!config_.data.passes && due(config_.table_day, batch->last_of_epoch)) end_table_day();
  if (!last && due(config_.checkpoint, batch->last_of_epoch)) checkpoint();
  if (!last) publish_version(batch->last_of_epoch, false);
  session_->tables().sweep_some();
  for (const std::string& line : session_->tables().take_removals()) observer_.note(line);
  advance_checkpoint();
  return true;
}

}  // namespace paddle::train
