// The folder of a run: claimed, continued, and checked against what it was begun with.

#include <algorithm>
#include <filesystem>

#include "base/files.h"
#include "data/open_data.h"
#include "train/job/resume.h"
#include "train/job/trainer_impl.h"
#include "train/records/run_record.h"

namespace paddle::train {
namespace {

namespace fs = std::filesystem;

}  // namespace

void Trainer::Impl::claim_folder() {
  check_rank_count(config_.parallel, communicator_->size());
  if (std::exchange(claimed_, true) || !communicator_->is_root()) return;
  std::error_code ignored;
  if (const std::string own = folder_.file("config.yaml");
      !options_.resume && config_.document.source &&
      fs::equivalent(config_.document.source->name(), own, ignored))
    fail(ErrorCode::kUsage, own,
         ": is the config itself, which the run would replace; choose another --output");
  folder_.claim(options_.resume, options_.overwrite);
  if (!folder_.has_checkpoints() && !options_.resume)
    write_file_atomically(folder_.file("config.yaml"), config::dump_yaml(config_.document));
}

void Trainer::Impl::start_folder() {
  folder_.keep();
  if (options_.overwrite && !options_.resume && communicator_->is_root()) folder_.clear();
  if (options_.resume) {
    if (restore()) {
      if (!config_.data.passes) {
        if (!state_.data_place.empty()) loader_->dataset().go_to(state_.data_place);
        loader_->seek(state_.position);
      }
      seconds_before_ = state_.seconds;
      written_ = true;
    } else {
      observer_.note(folder_.path() + ": has no checkpoint yet; the run starts from the beginning");
    }
  } else if (options_.replay) {
    check_replayed_run();
    go_to(options_.replay->checkpoint);
  } else if (state_.step > 0 && !config_.data.passes) {  // init.optimizer
    loader_->seek(state_.position);
  }
  session_->tables().set_step(state_.step);
  if (!communicator_->is_root()) return;
  metrics_ = std::make_unique<MetricsLog>(
      folder_.file("metrics.jsonl"), options_.resume ? state_.step : -1, state_.evaluation_due);
  if (config_.digests)
    digests_ = std::make_unique<DigestLog>(folder_.file("digests.jsonl"),
                                           options_.resume ? state_.step : -1);
  events_ = std::make_unique<EventWriter>(folder_.file("tensorboard"),
                                          options_.resume ? state_.step : -1);
  write_file_atomically(folder_.file("config.yaml"), config::dump_yaml(config_.document));
  write_run_record(folder_.file("run.json"), config_, options_.eager, loader_->dataset(),
                   valid_loader_ ? &valid_loader_->dataset() : nullptr,
                   session_->compiler().forward_digest());
}

/// The same step on the same data is a condition of a replay.
void Trainer::Impl::check_replayed_run() const {
  const std::string record = RunFolder(options_.replay->run).file("run.json");
  const RecordChanges changes =
      changes_since(record, loader_->dataset(), nullptr, session_->compiler().forward_digest());
  if (changes.model)
    fail(ErrorCode::kConfig, record,
         ": the run cannot be repeated: its model or loss was edited since");
  if (!changes.train.empty())
    fail(ErrorCode::kData, record,
         ": the run cannot be repeated: data.train has changed: ", changes.train.front());
}

/// Keeps the statistics and vocabularies that the weights were trained with, even if the files have
/// changed.
void Trainer::Impl::keep_fitted() {
  auto steps = program::list_checkpoints(folder_.checkpoints());
  for (; !steps.empty(); steps.pop_back()) {
    const fs::path folder = fs::path(folder_.checkpoints()) / std::to_string(steps.back());
    const std::string file = (folder / "inference" / "fitted.json").string();
    if (!fs::exists(file)) continue;
    std::vector<data::Fitted> fitted;
    try {
      fitted = data::read_fitted(file);
    } catch (const Error& e) {
      if (e.code() != ErrorCode::kModel || steps.size() == 1) throw;
      continue;  // restoring passes the checkpoint over, too
    }
    data::with_location(config_.document.find("data")->find("train"), [&] {
      data::apply_fitted(config_.data.train, fitted);
      return 0;
    });
    return;
  }
}

/// Handles changes outside of the config since the run was last started: warns of changed data,
/// rejects a changed model.
void Trainer::Impl::check_record(const std::vector<ConfigChange>& changes) {
  const RecordChanges record = changes_since(folder_.file("run.json"), loader_->dataset(),
                                             valid_loader_ ? &valid_loader_->dataset() : nullptr,
                                             session_->compiler().forward_digest());
  if (record.model)
    throw Error(ErrorCode::kConfig,
                "the model or the loss computes something else than when the run began: '" +
                    config_.exported().file +
                    "' or a file that it uses was edited; undo that, or start a new run with "
                    "another --output and --init " +
                    folder_.file("checkpoints/latest/model.safetensors"));
  for (const std::string& line : record.train)
    if (!config_.data.passes)  // which are other files each time
      observer_.warn("data.train has changed since the run began: " + line +
                     "; statistics, vocabularies and classes stay those of the run");
  for (const std::string& line : record.valid)
    observer_.warn("data.valid has changed since the run began: " + line);
  // Another number under the same name cannot be compared with the best so far.
  const std::string metric = "metrics." + config_.best.name;
  const bool other = std::any_of(changes.begin(), changes.end(), [&](const ConfigChange& change) {
    return change.path.starts_with("train.best") || change.path == "metrics" ||
           change.path == metric || change.path.starts_with(metric + ".") ||
           change.path == "data.valid" || change.path.starts_with("data.valid.");
  });
  const std::string stops =
      config_.early_stop ? "metrics." + config_.early_stop->metric.name : "metrics";
  other_metrics_ =
      other || !record.valid.empty() ||
      std::any_of(changes.begin(), changes.end(), [&](const ConfigChange& change) {
        return change.path == stops || change.path.starts_with(stops + ".") ||
               change.path == "train.early_stop" || change.path == "train.early_stop.metric" ||
               change.path == "train.early_stop.mode" || change.path.starts_with("schedule.m");
      });
  if (!state_.best || (!other && record.valid.empty())) return;
  observer_.note(str("the best so far (", format_double(*state_.best), " at step ",
                     state_.best_step, ") is discarded: it is of another metric or other data"));
  state_.best.reset();
  state_.best_step = 0;
}

}  // namespace paddle::train
