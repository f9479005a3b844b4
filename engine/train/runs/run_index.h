#pragma once
// Settings, progress and the last numbers of runs, as their folders have them. For tables of
// runs, for comparisons, and for searches over settings.

#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace paddle::train {

using NamedNumbers = std::vector<std::pair<std::string, double>>;

struct RunInfo {
  std::string path;
  std::string status;  ///< "finished", "running", "stopped", or "new": nothing is logged yet
  int64_t step = 0, epoch = 0;
  double seconds = 0;                ///< of training
  std::optional<double> train_loss;  ///< the last one
  NamedNumbers valid, test;          ///< the last evaluations: the loss first
  std::vector<std::pair<std::string, std::string>> settings;  ///< leaves of the resolved config

  /// A number of the last evaluation on the validation data; nullopt if there is none.
  std::optional<double> metric(const std::string& name) const;
  /// A leaf of the config; "" if there is none.
  std::string setting(const std::string& key) const;
};

/// Whether a folder is that of a run.
bool is_run_folder(const std::string& path);
/// The run folders at and below `path`, sorted. Links are not followed.
std::vector<std::string> find_runs(const std::string& path);
/// kUsage if it is not a run folder; damaged lines of a log are passed over.
RunInfo read_run(const std::string& path);

/// The keys whose values are not the same in all of these runs, in the order of the first config.
/// Names, paths and what only decides about reports are left out.
std::vector<std::string> varying_settings(const std::vector<RunInfo>& runs);

/// A training loss of a run's log.
struct LossAt {
  int64_t step = 0;
  double loss = 0;
};
std::vector<LossAt> read_losses(const std::string& path);

/// A number of every evaluation on the validation data, by step: the loss or a metric.
std::vector<LossAt> read_evaluations(const std::string& path, const std::string& name);
/// The learning rate and the loss of every logged step.
struct RateAt {
  int64_t step = 0;
  double rate = 0, loss = 0;
};
std::vector<RateAt> read_rates(const std::string& path);

/// Whether a higher value of the metric is better, as a run's config says; nullopt if unknown.
std::optional<bool> larger_is_better(const std::string& run, const std::string& metric);

}  // namespace paddle::train
