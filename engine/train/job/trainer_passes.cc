// Data that arrives in passes (`data.passes`): waiting for the files of the next one, evaluating it
// before it is trained, and the days of the tables that go with it. The number of a pass is the
// epoch of the position in the data, so a run continues in the pass where it stopped.

#include <algorithm>
#include <chrono>
#include <cmath>
#include <thread>

#include "base/interrupt.h"
#include "data/open_data.h"
#include "train/job/trainer_impl.h"

namespace paddle::train {
namespace {

constexpr auto kPoll = std::chrono::milliseconds(100);
/// How far from the first pass one is looked for that a run can begin or continue with.
constexpr int64_t kMaxPasses = 100'000;

data::CsvFileOptions& records_of(data::DataConfig& config) {
  return std::get<data::CsvFileOptions>(config.train.source);
}

}  // namespace

void Trainer::Impl::find_first_pass() {
  const data::PassOptions& passes = *config_.data.passes;
  const int64_t count = std::min(passes.count.value_or(kMaxPasses), kMaxPasses);
  const auto begun = Clock::now();
  for (bool told = false;; told = true) {
    for (int64_t number = 0; number < count; ++number) {
      if (!data::is_pass_ready(passes, number)) continue;
      // Its samples tell types and shapes; the run opens it again.
      records_of(config_.data).path = data::pass_path(passes, number);
      return;
    }
    if (options_.dry_run || options_.benchmark > 0 || seconds_since(begun) >= passes.wait ||
        pending_interrupt())
      fail(ErrorCode::kData, "data.passes: no pass is there; the first one, ",
           data::pass_name(passes, 0), ", has the files ", data::pass_path(passes, 0),
           passes.done.empty() ? "" : str(" and the file ", passes.done, " next to them"));
    if (!told)
      observer_.note(str("waiting for the pass ", data::pass_name(passes, 0), ": ",
                         data::pass_path(passes, 0)));
    std::this_thread::sleep_for(kPoll);
  }
}

bool Trainer::Impl::on_any_rank(bool value) {
  return communicator_->max(communicator_->is_root() && value ? 1 : 0) != 0;
}

Trainer::Impl::Arrival Trainer::Impl::wait_for_pass(int64_t number) {
  const data::PassOptions& passes = *config_.data.passes;
  const auto begun = Clock::now();
  for (bool told = false;; told = true) {
    if (on_any_rank(data::is_pass_ready(passes, number))) return Arrival::kReady;
    if (stop_signal() || (config_.max_time > 0 && ended_early())) return Arrival::kStopped;
    if (on_any_rank(seconds_since(begun) >= passes.wait)) return Arrival::kMissing;
    if (!told)
      observer_.note(str("waiting for the pass ", data::pass_name(passes, number), ": ",
                         data::pass_path(passes, number)));
    std::this_thread::sleep_for(std::min(
        kPoll, std::chrono::milliseconds(1 + std::llround(1e3 * std::min(passes.wait, 1.0)))));
  }
}

void Trainer::Impl::end_pass_days(int64_t next) {
  const data::PassOptions& passes = *config_.data.passes;
  Tables& tables = session_->tables();
  if (passes.shrink_days == 0 || !tables.has_days()) return;
  while (tables.day() < data::pass_day(passes, next) / passes.shrink_days) end_table_day();
}

bool Trainer::Impl::open_pass() {
  const data::PassOptions& passes = *config_.data.passes;
  for (;; state_.position = {state_.position.epoch + 1, 0}) {
    const int64_t number = state_.position.epoch;
    if (passes.count && number >= *passes.count) return false;
    end_pass_days(number);
    const Arrival arrival = wait_for_pass(number);
    if (arrival == Arrival::kStopped) return false;
    if (arrival == Arrival::kReady) break;
    observer_.warn(str("the pass ", data::pass_name(passes, number),
                       " is missing: ", data::pass_path(passes, number),
                       passes.done.empty() ? "" : str(" with ", passes.done), " has not come in ",
                       format_double(passes.wait), " s"));
    missing_passes_.push_back(number);
  }
  const int64_t number = state_.position.epoch;
  std::erase_if(missing_passes_, [&](int64_t each) {
    if (!data::is_pass_ready(passes, each)) return false;
    observer_.warn(str("the pass ", data::pass_name(passes, each),
                       " has come after it was passed over; it is not trained"));
    return true;
  });
  data::DataConfig config = config_.data;
  config.valid.reset();
  config.test.reset();
  records_of(config).path = data::pass_path(passes, number);
  config.loader.epochs = number + 1;
  data::OpenData opened = data::open_data(config_.document, config);
  for (const std::string& line : opened.warnings) observer_.warn(line);
  loader_ = std::move(opened.train_loader);
  loader_->require(use_.ranges);
  watch_alignments();
  observer_.note(str("pass ", data::pass_name(passes, number), ": ", loader_->samples_per_epoch(),
                     " samples"));
  if (passes.predict_first && state_.position.sample == 0) {
    log_train();
    data::LoaderOptions options = config_.data.valid_loader;
    data::Loader predicted(opened.train, options);
    predicted.require(use_.ranges);
    if (!evaluate(predicted, "pass")) return false;
  }
  read_own_rows();
  loader_->seek(state_.position);
  pass_ = number;
  return true;
}

std::optional<data::Batch> Trainer::Impl::next_batch() {
  if (!config_.data.passes) return loader_->next();
  while (true) {
    if (pass_ >= 0 && pass_ == state_.position.epoch) {
      if (std::optional<data::Batch> batch = loader_->next()) return batch;
      state_.position = {pass_ + 1, 0};
    }
    if (!open_pass()) return std::nullopt;
  }
}

}  // namespace paddle::train
