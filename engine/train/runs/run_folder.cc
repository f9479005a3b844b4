#include "train/runs/run_folder.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <filesystem>
#include <system_error>
#include <thread>

#include "base/files.h"
#include "ps/order_log.h"
#include "train/job/resume.h"

namespace paddle::train {
namespace {

namespace fs = std::filesystem;

/// A killed process may take a moment to go.
constexpr auto kLockPatience = std::chrono::seconds(5);

/// The files and folders that a run writes.
constexpr const char* kEntries[] = {
    "config.yaml",   "run.json", "metrics.jsonl",       "checkpoints", "model",
    "models",        "best",     "skipped.jsonl",       "tensorboard", "report.html",
    "digests.jsonl", "adapter",  "adapter.safetensors", "ranks",       ps::kOrderFolder};

std::vector<ConfigChange> check_config(const std::string& checkpoint, const config::Node& config,
                                       const std::function<void(const std::string&)>& note) {
  config::Diagnostics diagnostics;
  config::Node before;
  try {
    before = config::read_document((fs::path(checkpoint) / "config.yaml").string(), diagnostics);
    diagnostics.raise();
  } catch (const Error& e) {  // a file of ours that does not read is damaged
    fail(ErrorCode::kModel, e.what());
  }
  std::vector<ConfigChange> changes = check_changes(before, config);
  for (const ConfigChange& c : changes)
    note(str("changed on resume: ", c.path, " was ", c.before.empty() ? "absent" : c.before,
             ", is ", c.after.empty() ? "absent" : c.after));
  return changes;
}

}  // namespace

std::string config_of_run(const std::string& folder) {
  if (!is_directory(folder)) fail(ErrorCode::kUsage, folder, ": no such run folder");
  for (const char* file : {"config.yaml", "checkpoints/latest/config.yaml"})
    if (file_exists((fs::path(folder) / file).string())) return (fs::path(folder) / file).string();
  fail(ErrorCode::kUsage, folder, ": holds no run (there is no config.yaml in it)");
}

std::string fitted_of_checkpoint(const std::string& checkpoint) {
  if (checkpoint.empty()) return "";
  const std::string file = join_path(checkpoint, "inference/fitted.json");
  return file_exists(file) ? file : "";
}

RunFolder::~RunFolder() {
  std::error_code ignored;
  if (is_made_here_) {
    for (const char* name : {"config.yaml", ".lock"}) fs::remove(file(name), ignored);
    fs::remove(path_, ignored);  // if nothing else is in it
  }
  if (lock_ >= 0) ::close(lock_);
}

std::string RunFolder::file(const std::string& name) const {
  return (fs::path(path_) / name).string();
}

void RunFolder::claim(bool resume, bool overwrite) {
  if (resume && !is_directory(path_))
    fail(ErrorCode::kUsage, path_, ": no such run folder to resume");
  if (!resume && !overwrite && has_checkpoints())
    fail(ErrorCode::kUsage, path_, ": has checkpoints of an earlier run; use --resume ", path_,
         " to continue, --overwrite to start over, or another --output");
  if (!resume) check_foreign_files();
  is_made_here_ = !is_directory(path_);
  ensure_directory(path_);
  lock_ = ::open(file(".lock").c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666);
  if (lock_ < 0)
    fail(ErrorCode::kDevice, "cannot write '", path_,
         "': ", std::generic_category().message(errno));
  const auto deadline = std::chrono::steady_clock::now() + kLockPatience;
  while (::flock(lock_, LOCK_EX | LOCK_NB) != 0) {
    if (errno != EWOULDBLOCK && errno != EINTR) return;  // a file system without locks
    if (std::chrono::steady_clock::now() > deadline)
      fail(ErrorCode::kUsage, path_, ": another process is training into this folder");
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
  }
}

void RunFolder::check_foreign_files() const {
  if (fs::exists(file(".lock")) || fs::exists(file("run.json")) || has_checkpoints()) return;
  for (const char* name : kEntries)
    if (fs::exists(file(name)))
      fail(ErrorCode::kUsage, file(name),
           ": exists and was not written by a run; choose another --output");
}

void RunFolder::clear() {
  std::error_code ignored;
  for (const char* name :
       {"checkpoints", "model", "models", "best", "metrics.jsonl", "skipped.jsonl", "tensorboard",
        "report.html", "ranks", ps::kOrderFolder})
    fs::remove_all(file(name), ignored);
}

std::optional<RunFolder::Restored> RunFolder::restore(
    program::ParameterStore& store, const program::FurtherTensors& further,
    const config::Node& config, const std::function<void(const std::string&)>& note,
    const std::function<void(const std::string&)>& warn) {
  program::remove_leftovers(checkpoints());
  auto steps = program::list_checkpoints(checkpoints());
  std::vector<int64_t> damaged;
  while (!steps.empty()) {
    const int64_t step = steps.back();
    const std::string path = (fs::path(checkpoints()) / std::to_string(step)).string();
    steps.pop_back();
    try {
      Restored restored;
      restored.changes = check_config(path, config, note);
      restored.state = program::read_checkpoint(path, store, further);
      note(str("resumed from ", path, " (step ", restored.state.step, ")"));
      for (const int64_t bad : damaged) program::set_aside(checkpoints(), bad);
      if (!damaged.empty()) program::point_latest(checkpoints(), step);
      return restored;
    } catch (const program::OtherModelError&) {
      throw;
    } catch (const Error& e) {
      if (steps.empty() || e.code() != ErrorCode::kModel) throw;
      warn(e.what() + std::string("; going back to the checkpoint before"));
      damaged.push_back(step);
    }
  }
  return std::nullopt;
}

}  // namespace paddle::train
