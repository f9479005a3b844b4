// Checkpoints of a run: written by all ranks, at once or while training continues.

#include <filesystem>

#include "base/phase.h"
#include "ir/module.h"
#include "program/checkpoint.h"
#include "program/saved_model.h"
#include "train/job/averages.h"
#include "train/job/trainer_impl.h"

namespace paddle::train {

namespace fs = std::filesystem;

std::string Trainer::Impl::checkpoint() {
  std::string path = (fs::path(folder_.checkpoints()) / std::to_string(state_.step)).string();
  update_running_statistics();
  if (written_) return path;
  complete_checkpoint();  // of an earlier step
  const Phase phase("writing a checkpoint");
  const comm::ActivityScope activity(*communicator_, "writing a checkpoint");
  // Between two passes the loader is still that of the first one.
  if (!config_.data.passes || pass_ == state_.position.epoch) {
    state_.position = loader_->position();
    state_.data_place =
        loader_->dataset().place_before(state_.position.epoch, state_.position.sample);
  }
  state_.seconds = seconds_before_ + seconds_since(started_);
  written_ = true;
  program::CheckpointContent content;
  content.state = state_;
  if (communicator_->is_root()) {
    content.config = config::dump_yaml(config_.document);
    content.module = ir::print(session_->compiler().module());
    content.further = [this](const std::string& folder) {
      program::write_metadata(folder, config_.name, config_.document, loader_->fields(),
                              loader_->dataset(), use_);
    };
  }
  tables_apart_ = session_->tables().has_own_files();
  const program::ParameterStore stored =
      session_->tables().with_tables(store_, Tables::Saved::kInline);
  // The weights of a checkpoint are those that evaluation uses.
  pending_ =
      std::make_unique<CheckpointInProgress>(folder_.checkpoints(), stored, std::move(content),
                                             averages_of(store_), config_.checkpoint_async);
  pending_->step = state_.step;
  pending_->best_step = state_.best_step;
  if (communicator_->is_root()) pending_->writer.create();
  communicator_->barrier();
  const auto part_of = [&](const std::string& name) -> std::optional<program::TensorPart> {
    if (!session_->tables().has_name(name)) return session_->shards().written_part(name);
    if (!communicator_->is_root()) return std::nullopt;
    return program::whole_part(stored.array(name));
  };
  pending_->writer.take(part_of, config_.checkpoint_async);
  // They are written at once, since the next update changes their rows.
  if (tables_apart_)
    pending_->writer.check_also(
        session_->tables().write_own_files(pending_->writer.folder(), state_.step));
  pending_->start([writer = &pending_->writer] { writer->write(); });
  if (!config_.checkpoint_async) complete_checkpoint();
  return path;
}

void Trainer::Impl::continue_checkpoint() {
  pending_->wait();
  if (!pending_->has_tensors) {
    pending_->has_tensors = true;
    if (communicator_->is_root())
      pending_->start([writer = &pending_->writer] { writer->finish(); });
    return;
  }
  const int64_t step = pending_->step;
  if (communicator_->is_root())
    program::prune_checkpoints(folder_.checkpoints(), config_.keep_checkpoints,
                               {pending_->best_step, step});
  pending_.reset();
  if (communicator_->is_root())
    observer_.checkpoint((fs::path(folder_.checkpoints()) / std::to_string(step)).string());
}

void Trainer::Impl::advance_checkpoint() {
  if (pending_ && communicator_->max(pending_->busy() ? 1 : 0) == 0) continue_checkpoint();
}

void Trainer::Impl::complete_checkpoint() {
  while (pending_) {
    pending_->wait();
    communicator_->barrier();
    continue_checkpoint();
  }
}

}  // namespace paddle::train
