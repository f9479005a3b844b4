#pragma once
// The folder of a run: who may write into it, what a new run finds there, and going back to its
// newest whole checkpoint. A lock keeps two processes from training into one folder.

#include <functional>
#include <optional>
#include <string>

#include "config/document.h"
#include "program/checkpoint.h"
#include "train/job/resume.h"

namespace paddle::train {

/// The config of a run folder: its own, or, if that is lost, that of its newest checkpoint. kUsage
/// if there is none.
std::string config_of_run(const std::string& folder);

/// The file with what the run of a checkpoint has fitted, for TrainOptions::fitted; "" if it has
/// none, or if `checkpoint` is "".
std::string fitted_of_checkpoint(const std::string& checkpoint);

class RunFolder {
 public:
  explicit RunFolder(std::string path) : path_(std::move(path)) {}
  ~RunFolder();
  RunFolder(const RunFolder&) = delete;
  RunFolder& operator=(const RunFolder&) = delete;

  const std::string& path() const { return path_; }
  std::string file(const std::string& name) const;
  std::string checkpoints() const { return file("checkpoints"); }
  bool has_checkpoints() const { return !program::list_checkpoints(checkpoints()).empty(); }

  /// Makes the folder and locks it for this process. kUsage if it has checkpoints and neither
  /// `resume` nor `overwrite` is given, if another program has made the folder and a file in it has
  /// a name that a run writes, or if another process trains into it.
  void claim(bool resume, bool overwrite);
  /// The run begins. Before that, a folder that `claim` has made goes away with this object, so
  /// that a rejected run leaves nothing.
  void keep() { is_made_here_ = false; }
  /// Removes what an earlier run left.
  void clear();
  struct Restored {
    program::RunState state;
    std::vector<ConfigChange> changes;  ///< of the config, against the checkpoint's
  };
  /// Reads the newest whole checkpoint into the store; nullopt if there is none. Damaged ones are
  /// passed over, told to `warn` and set aside. kConfig if `config` differs from the checkpoint's
  /// in a key that may not change; allowed changes are reported through `note`.
  std::optional<Restored> restore(program::ParameterStore& store,
                                  const program::FurtherTensors& further,
                                  const config::Node& config,
                                  const std::function<void(const std::string&)>& note,
                                  const std::function<void(const std::string&)>& warn);

 private:
  void check_foreign_files() const;

  std::string path_;
  int lock_ = -1;
  bool is_made_here_ = false;
};

}  // namespace paddle::train
