#pragma once
// Optional parts of a run and their sections of the config: the best checkpoint, early stopping,
// a limit of time, averaged weights and initial weights.

#include <optional>
#include <string>
#include <vector>

#include "config/diagnostics.h"
#include "config/schema.h"
#include "train/step/metric_call.h"
#include "train/step/step.h"
#include "train/weights/initial_weights.h"

namespace paddle::train {

/// "every": a number of updates, or of epochs ("2 epochs"); 0: never.
struct Interval {
  int64_t steps = 0;
  int64_t epochs = 0;
};

/// `train.swa`, whose epochs become updates when the data is known.
struct EqualAveraging {
  Interval start, every;
};

/// A validation value that decides something, and which values of it are better.
struct WatchedMetric {
  std::string name = {};  ///< "loss" or a metric; "" for none
  bool larger_is_better = false;
};

/// `train.on_nonfinite`: what follows from a loss or gradients that are not finite.
enum class NonFinitePolicy : uint8_t {
  kStop,      ///< the run ends with an error
  kSkip,      ///< the update is left out
  kRollback,  ///< the run continues from its newest checkpoint, after the batch
};

/// `train.early_stop`
struct EarlyStop {
  WatchedMetric metric;
  int64_t patience = 3;  ///< evaluations without an improvement before the rate is reduced
  double min_delta = 0;  ///< smallest difference that is an improvement
};

/// Adds the keys of these parts to the schema of `train:`.
void add_feature_keys(config::Schema& train);
/// The section `init:`.
config::Spec init_spec();

/// The metric called `name`, as `key` of `section` states it. `mode` is "auto", "max" or "min".
/// Unknown names, and directions that are missing or wrong, go to `diagnostics`.
WatchedMetric read_watched(const std::string& name, const std::string& mode,
                           const std::vector<MetricDefinition>& metrics,
                           const config::Section& section, const std::string& key,
                           const std::string& path, config::Diagnostics& diagnostics);
std::optional<EarlyStop> read_early_stop(const config::Section& train,
                                         const std::vector<MetricDefinition>& metrics,
                                         config::Diagnostics& diagnostics);
/// An interval of `section`, whose path is `path`; kConfig for other text.
Interval read_interval(const config::Section& section, const std::string& path,
                       const std::string& key);
std::optional<Averaging> read_averaging(const config::Section& train);
std::optional<EqualAveraging> read_equal_averaging(const config::Section& train);
/// `train.max_time` in seconds: "90", "30m", "1h30m"; 0 for none. kConfig for other text.
double read_max_time(const config::Section& train);
InitialWeights read_init(const config::Section& config);

}  // namespace paddle::train
