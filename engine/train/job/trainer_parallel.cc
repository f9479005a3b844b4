// Runs of several ranks: what they agree on, and what is said about their parts.

#include <bit>
#include <cmath>
#include <filesystem>
#include <span>

#include "base/files.h"
#include "base/interrupt.h"
#include "comm/clock.h"
#include "train/evaluation/merge_states.h"
#include "train/job/averages.h"
#include "train/job/trainer_impl.h"

namespace paddle::train {

int Trainer::Impl::stop_signal() {
  if (stopped_by_ == 0) stopped_by_ = static_cast<int>(communicator_->max(pending_interrupt()));
  return stopped_by_;
}

void Trainer::Impl::compare_ranks() {
  if (communicator_->size() == 1) return;
  const std::string config = config::dump_yaml(config_.document);
  const uint32_t digest = crc32(std::as_bytes(std::span(config.data(), config.size())));
  const std::vector<int64_t> configs = communicator_->gather_numbers(digest);
  const std::vector<int64_t> models =
      communicator_->gather_numbers(session_->compiler().forward_digest());
  const std::vector<int64_t> versions =
      communicator_->gather_numbers(crc32(std::as_bytes(std::span(options_.version))));
  for (size_t rank = 1; rank < configs.size(); ++rank) {
    if (versions[rank] != versions[0])
      fail(ErrorCode::kConfig, "rank ", rank,
           " runs a different version of the program than rank 0, or uses different instruction "
           "sets; all "
           "ranks need the same ones (PADDLE_MAX_ISA limits the instruction sets)");
    if (configs[rank] != configs[0])
      fail(ErrorCode::kConfig, "rank ", rank,
           " was started with a different config than rank 0; all ranks need the same one");
    if (models[rank] != models[0])
      fail(
          ErrorCode::kConfig, "rank ", rank,
          " has a different model than rank 0; all ranks need the same files and the same program");
  }
}

void Trainer::Impl::keep_flight_record() {
  if (communicator_->size() == 1) return;
  std::vector<int64_t> offsets = comm::clock_offsets(*communicator_);
  offsets.resize(communicator_->all().size());
  communicator_->broadcast(std::as_writable_bytes(std::span(offsets)));
  try {
    const std::string folder = std::filesystem::absolute(folder_.file("ranks")).string();
    ensure_directory(folder);
    communicator_->keep_record(folder, offsets[static_cast<size_t>(communicator_->rank())]);
  } catch (const Error& e) {
    observer_.note(e.message());
  }
}

void Trainer::Impl::report_partition() {
  for (const partition::Gathered& g : session_->compiler().gathered()) {
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

void Trainer::Impl::merge_over_ranks(Evaluator& metrics, EvaluationDetails& details) {
  if (communicator_->size() == 1) return;
  std::vector<metrics::MetricState*> states = metrics.states();
  if (metrics::MetricState* const state = details.state()) states.push_back(state);
  // Ranks that differ along other axes have counted the same rows.
  const partition::Mesh mesh = config_.parallel.mesh();
  const std::vector<int64_t> group = mesh.group(communicator_->rank(), mesh.axis("data"));
  merge_states(*communicator_, std::vector<int>(group.begin(), group.end()), states);
}

std::vector<std::string> Trainer::Impl::placement_lines() const {
  std::vector<std::string> lines = session_->compiler().stages().summary();
  for (const auto& [name, parameter] : store_.parameters) {
    const partition::Placement placement = session_->shards().placement_of(name);
    if (!placement.empty())
      lines.push_back("split: " + name + "  " +
                      partition::text(placement, parameter.value.shape, config_.parallel.mesh()));
  }
  if (!session_->compiler().communication_summary().empty())
    lines.push_back(session_->compiler().communication_summary());
  return lines;
}

void Trainer::Impl::go_to(const std::string& checkpoint) {
  if (checkpoint.empty()) return;
  Tables::Contents tables;
  state_ = program::read_checkpoint(checkpoint, store_, session_->tables().of_checkpoint(tables));
  session_->tables().restore(tables);
  session_->tables().set_day(state_.table_day);
  session_->tables().set_step(state_.step);
  swap_averages(store_);
  if (config_.data.passes) {
    pass_ = -1;  // it is opened again
  } else {
    if (!state_.data_place.empty()) loader_->dataset().go_to(state_.data_place);
    loader_->seek(state_.position);
  }
}

int64_t Trainer::Impl::replay(const std::string& checkpoint,
                              const std::function<void(const ReplayedValue&)>& visit) {
  go_to(checkpoint);
  const std::optional<data::Batch> batch = loader_->next();
  if (!batch) fail(ErrorCode::kData, "the data ends after ", state_.step, " batches");
  const StepScalars numbers = next_scalars();
  session_->replay().run(batch->arrays, numbers, visit);
  return numbers.step;
}

std::string Trainer::Impl::memory_by_rank() {
  if (communicator_->size() == 1) return "";
  const std::vector<int64_t> stored =
      communicator_->gather_numbers(session_->shards().stored_bytes());
  const std::vector<int64_t> step =
      communicator_->gather_numbers(static_cast<int64_t>(plan_->training.arena));
  const std::vector<int64_t> all =
      communicator_->gather_numbers(static_cast<int64_t>(plan_->total()));
  const auto column = [](int64_t bytes) {
    std::string text = human_bytes(static_cast<uint64_t>(bytes));
    constexpr size_t kWidth = 24;
    text.insert(0, kWidth - std::min(kWidth, text.size()), ' ');
    return text;
  };
  std::string out =
      "  rank   parameters and states  activations, gradients                  in all\n";
  for (size_t rank = 0; rank < stored.size(); ++rank) {
    std::string number = std::to_string(rank);
    number.insert(0, 6 - std::min<size_t>(6, number.size()), ' ');
    out += number + column(stored[rank]) + column(step[rank]) + column(all[rank]) + "\n";
  }
  return out;
}

void Trainer::Impl::read_own_rows() {
  // The weights of micro-batches may depend on all labels.
  const int64_t parts = config_.accumulate;
  if (parts > 1 && loss_form_.kind == LossForm::Kind::kWeighted) return;
  if (!session_->compiler().reads_local_rows_only()) return;
  const auto ranks = static_cast<int>(config_.parallel.data);
  const partition::Mesh mesh = config_.parallel.mesh();
  const int rank = mesh.coordinate(communicator_->rank(), mesh.axis("data"));
  const bool reads = loader_->read_rows([=](int64_t row, int64_t rows) {
    const int64_t micro = std::min(parts, rows);
    for (int64_t i = 0; i < micro; ++i) {
      const int64_t begin = rows * i / micro, end = rows * (i + 1) / micro;
      if (row < begin || row >= end) continue;
      const auto [first, last] = partition::shard_bounds(end - begin, rank, ranks);
      return end - begin == 1 || (row - begin >= first && row - begin < last);
    }
    return true;
  });
  if (reads) session_->compiler().expect_local_rows();
}

bool Trainer::Impl::restore() {
  int64_t step = -1;
  Tables::Contents tables;
  if (communicator_->is_root()) {
    const auto restored = folder_.restore(
        store_, session_->tables().of_checkpoint(tables), config_.document,
        [&](const std::string& line) { observer_.note(line); },
        [&](const std::string& line) { observer_.warn(line); });
    if (restored) {
      step = restored->state.step;
      state_ = restored->state;
      check_record(restored->changes);
    }
  }
  communicator_->broadcast(std::as_writable_bytes(std::span(&step, 1)));
  if (step < 0) return false;
  if (!communicator_->is_root())
    state_ = program::read_checkpoint(folder_.checkpoints() + "/" + std::to_string(step), store_,
                                      session_->tables().of_checkpoint(tables));
  session_->tables().restore(tables);
  session_->tables().set_day(state_.table_day);
  session_->tables().set_step(state_.step);
  swap_averages(store_);
  // The best so far may have been forgotten.
  double best = state_.best.value_or(std::nan(""));
  communicator_->broadcast(std::as_writable_bytes(std::span(&best, 1)));
  communicator_->broadcast(std::as_writable_bytes(std::span(&state_.best_step, 1)));
  state_.best = std::isnan(best) ? std::nullopt : std::optional(best);
  communicator_->broadcast(std::as_writable_bytes(std::span(&other_metrics_, 1)));
  if (other_metrics_ == 0) return true;
  state_.early_stop = {};
  for (program::Watch& watch : state_.plateaus) watch = {.factor = watch.factor};
  return true;
}

}  // namespace paddle::train
