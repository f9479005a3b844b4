#pragma once
// The trials of a search over settings: every combination of listed values, or random ones of lists
// and ranges. Each trial is an ordinary run.

#include <cstdint>
#include <string>
#include <vector>

#include "config/document.h"

namespace paddle::train {

/// `optimizer.lr=1e-3,1e-2` or `optimizer.lr=1e-4..1e-1`.
struct SweptKey {
  std::string key;
  std::vector<std::string> values;  ///< empty for a range
  double low = 0, high = 0;
  bool is_integer = false;  ///< of a range: both bounds are integers
  bool is_log = false;      ///< of a range: from 10 times the low bound on, drawn by logarithm
};

/// Whether a value is a finite number, which goes to `out`.
bool parse_number(const std::string& text, double& out);
/// kUsage for text that is no `key=value,…`. Commas in brackets, braces and quotes separate
/// nothing.
SweptKey parse_swept(const std::string& text);

/// The overrides of one trial.
using Trial = std::vector<std::string>;

/// All combinations, the last key fastest. kUsage for ranges and for more than 10,000 trials.
std::vector<Trial> grid_trials(const std::vector<SweptKey>& keys);
/// `count` trials that the seed determines; the first n are the same for any larger count.
std::vector<Trial> random_trials(const std::vector<SweptKey>& keys, int64_t count, uint64_t seed);

/// A round of successive halving: the best `trials` are trained up to this share of the
/// config's steps.
struct Rung {
  double share = 1;
  size_t trials = 0;
};
/// Rounds from all trials to the last one or few, whose share is 1: the number of trials falls by
/// `factor` from round to round, and the share grows by it. kUsage unless factor >= 2.
std::vector<Rung> halving_rungs(size_t trials, int64_t factor);

/// The name of a trial's run folder: its number and its values, "007-lr=0.01".
std::string trial_name(size_t index, const Trial& trial);

/// A digest of all that a trial depends on: its resolved config, the contents of all files and
/// folders that it names (data, model files and what they include, weights), and the program's
/// version. Trials with equal digests have equal results.
std::string trial_digest(const config::Node& document);

/// Keeps other processes from using a folder in the same way, until it is destroyed.
class FolderLock {
 public:
  /// kUsage if another process holds it, kDevice if the folder cannot be written.
  FolderLock(const std::string& folder, const std::string& what);
  ~FolderLock();
  FolderLock(const FolderLock&) = delete;
  FolderLock& operator=(const FolderLock&) = delete;

 private:
  int file_ = -1;
};

}  // namespace paddle::train
