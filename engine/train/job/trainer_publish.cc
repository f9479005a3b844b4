// Versions for serving that a run publishes (`parameter_server.publish`). Each is made of a
// checkpoint. A file in the folder of the run says that one is being made, so that a run that was
// killed meanwhile publishes it when it continues.

#include <filesystem>

#include "base/files.h"
#include "base/phase.h"
#include "base/text.h"
#include "program/model_store.h"
#include "train/job/trainer_impl.h"
#include "train/tables/publish.h"
#include "train/tables/stored_edits.h"

namespace paddle::train {

namespace {

constexpr const char* kNote = "publishing.txt";
constexpr std::string_view kBase = " base";

}  // namespace

bool Trainer::Impl::is_publish_due(const PublishInterval& every, bool epoch_ended) const {
  return due(every.steps, epoch_ended) ||
         (every.days > 0 && session_->tables().day() >= published_day_ + every.days) ||
         (every.seconds > 0 && seconds_since(published_at_) >= every.seconds);
}

void Trainer::Impl::publish_version(bool epoch_ended, bool run_ended) {
  if (!config_.parameter_server.publishing) return;
  const Publishing& publishing = *config_.parameter_server.publishing;
  constexpr int64_t kDelta = 1, kBaseDue = 2;
  int64_t is_due = 0;  // by the clock of the root
  if (communicator_->is_root())
    is_due = is_publish_due(publishing.base, epoch_ended)    ? kBaseDue
             : is_publish_due(publishing.delta, epoch_ended) ? kDelta
                                                             : 0;
  is_due = communicator_->max(is_due);
  if (is_due == 0 && !run_ended) return;
  const bool base = is_due == kBaseDue;
  read_losses(0);
  if (communicator_->is_root())
    write_file_atomically(folder_.file(kNote), str(state_.step, base ? kBase : "", "\n"));
  const std::string saved = checkpoint();
  complete_checkpoint();
  published_day_ = session_->tables().day();
  published_at_ = Clock::now();
  if (communicator_->is_root()) write_version(saved, base);
}

void Trainer::Impl::begin_publishing() {
  if (!config_.parameter_server.publishing) return;
  published_day_ = session_->tables().day();
  published_at_ = Clock::now();
  const std::string note = folder_.file(kNote);
  if (!communicator_->is_root() || !file_exists(note)) return;
  constexpr uint64_t kMaxNote = 64;
  const std::string text(trim(read_file(note, kMaxNote, ErrorCode::kModel)));
  const std::string step = std::to_string(state_.step),
                    saved = (std::filesystem::path(folder_.checkpoints()) / step).string();
  const bool is_base = text == step + std::string(kBase);
  if ((text == step || is_base) && is_directory(saved))
    write_version(saved, is_base);
  else
    std::filesystem::remove(note);  // the run gets there again
}

void Trainer::Impl::write_version(const std::string& saved, bool base) {
  const Phase phase("publishing a version");
  const Publishing& publishing = *config_.parameter_server.publishing;
  const auto version =
      publish(saved, publishing.to, base, publishing.rules, config_.table_policies);
  // A run that was killed before it became the current one.
  if (!version)
    program::set_current_version(publishing.to, std::to_string(step_of_checkpoint(saved)));
  std::filesystem::remove(folder_.file(kNote));
  if (version)
    observer_.note(str("published version ", version->name, ": ",
                       version->is_base ? "a base of " : "a delta of ", version->rows, " rows, ",
                       human_bytes(version->bytes)));
}

}  // namespace paddle::train
