#pragma once
// Checkpoints: folders written next to their final place and renamed, so that a crash at any moment
// leaves the previous one whole. A checkpoint is taken between updates and holds all that the run
// needs to continue bit for bit.

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "data/loader.h"
#include "formats/safetensors.h"
#include "program/parameter_store.h"

namespace paddle::program {

/// A metric that evaluations watch for improvement.
struct Watch {
  std::optional<double> best = {};
  int64_t waited = 0;    ///< evaluations since it improved
  int64_t cooldown = 0;  ///< evaluations that are not counted yet
  double factor = 1;     ///< on the learning rate
};

struct RunState {
  int64_t step = 0;  ///< updates done
  data::LoaderPosition position;
  std::string data_place;     ///< of a stream, before the position (data::Dataset::place_before)
  int64_t samples = 0;        ///< seen in all
  double seconds = 0;         ///< of training so far
  double train_loss_sum = 0;  ///< since the last log line
  int64_t train_loss_count = 0;
  std::vector<double> loss_sums;  ///< the same of each optimizer with a name
  std::optional<double> best;     ///< of the metric that decides
  int64_t best_step = 0;
  bool evaluation_due = false;  ///< at this step, and not done when the run was stopped
  int64_t evaluated_step = -1;  ///< of the last evaluation on the validation data
  int64_t table_day = 0;        ///< days of tables that are over
  Watch early_stop;
  std::vector<Watch> plateaus;  ///< of each optimizer whose rate falls on plateaus; others unused
};

struct CheckpointContent {
  std::string config;                                      ///< resolved YAML
  std::string module;                                      ///< text form
  std::function<void(const std::string& folder)> further;  ///< writes what inference needs
  RunState state;
};

/// Removes all but the newest `keep` and those named in `spare`.
void prune_checkpoints(const std::string& folder, int64_t keep, const std::vector<int64_t>& spare);

/// Points `folder/latest` at a checkpoint; the link is made under another name and renamed.
void point_latest(const std::string& folder, int64_t step);
/// Removes what a killed process left half-written or half-removed.
void remove_leftovers(const std::string& folder);
/// Renames a checkpoint that turned out damaged, so that it no longer counts as one.
void set_aside(const std::string& folder, int64_t step);

/// Complete checkpoints in a folder, newest last.
std::vector<int64_t> list_checkpoints(const std::string& folder);
/// A checkpoint that is whole and belongs to another model (kModel).
class OtherModelError : public Error {
 public:
  using Error::Error;
};

/// Tensors of a checkpoint that are kept outside of the store.
struct FurtherTensors {
  std::function<bool(const std::string& name)> has;
  /// Reads and checks them, before anything in the store is replaced.
  std::function<void(const formats::SafetensorsReader& weights,
                     const formats::SafetensorsReader& optimizer)>
      read;
};
/// Reads a checkpoint into the store; kModel if it is damaged (sizes and checksums of its files are
/// checked) or of another model, and the store is then as before.
RunState read_checkpoint(const std::string& path, ParameterStore& store,
                         const FurtherTensors& further = {});
struct CheckpointFiles {
  int64_t whole = 0;                  ///< files that are as they were written
  uint64_t bytes = 0;                 ///< of these
  std::vector<std::string> problems;  ///< of the others, with the path
};
/// Compares the files of a checkpoint with their sizes and checksums.
CheckpointFiles check_checkpoint(const std::string& path);
/// Weights only, by name, from a safetensors file. Returns a report.
struct LoadReport {
  std::vector<std::string> matched, mismatched, missing, unused;
  std::string text() const;
};
/// Loads into parameters and model states that the store already has. Unless `copied`, values of
/// the wanted type stay where they lie in the file, for readers only.
LoadReport load_weights(const std::string& file, ParameterStore& store, bool copied = true);
/// Throws kModel unless what is missing or unused is allowed by pattern. States of sequences that a
/// model folder keeps in addition to its weights may be unused.
void check_report(const LoadReport& report, const std::string& file,
                  const std::vector<std::string>& allow_missing,
                  const std::vector<std::string>& allow_unused);

/// Weights and model states as a safetensors file.
void write_weights(const std::string& file, const ParameterStore& store);

}  // namespace paddle::program
