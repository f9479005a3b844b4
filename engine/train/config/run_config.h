#pragma once
// A run as its YAML config states it: strictly checked, completed with defaults, and turned into
// the structs that the jobs take. docs/guide/training.md explains every key.

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/update_count.h"
#include "config/overrides.h"
#include "config/schema.h"
#include "data/data_config.h"
#include "program/model_config.h"
#include "quant_common/fake_quant.h"
#include "runtime/compile.h"
#include "train/config/features.h"
#include "train/config/optimizer_config.h"
#include "train/config/parallel_config.h"
#include "train/config/parameter_server.h"
#include "train/step/distillation.h"
#include "train/step/step.h"
#include "train/tables/table_policy.h"

namespace paddle::train {

struct RunConfig {
  std::string name;
  std::string file;
  config::Node document;  ///< resolved, for --dump-config and checkpoints
  std::vector<std::string> warnings;
  std::vector<program::NamedModel> models;  ///< the first one is exported
  lang::Code loss;
  std::vector<MetricDefinition> metrics;
  std::vector<OptimizerConfig> optimizers;
  optim::ClipOptions clip;
  data::DataConfig data;
  int64_t epochs = 0, steps = 0;  ///< whichever ends first; 0: no bound
  int64_t accumulate = 1;
  int threads = 0;  ///< 0: all cores
  UpdateCount log_every = {50};
  Interval evaluate, checkpoint;
  int64_t keep_checkpoints = 3;
  bool checkpoint_async = false;
  WatchedMetric best;  ///< whose best checkpoint is kept
  std::optional<EarlyStop> early_stop;
  double max_time = 0;                ///< seconds of training; 0: no bound
  std::optional<Averaging> average;   ///< train.ema
  std::optional<EqualAveraging> swa;  ///< train.swa
  bool log_gradient_norm = false;
  NonFinitePolicy on_nonfinite = NonFinitePolicy::kStop;
  bool digests = false;              ///< of the weights after each update, in digests.jsonl
  std::optional<Adapters> adapters;  ///< `lora:`
  InitialWeights init;
  uint64_t seed = 0;
  bool use_float64 = false;             ///< precision: float64
  std::optional<MixedPrecision> mixed;  ///< precision: bfloat16 or float16
  std::vector<std::string> keep_zeros;  ///< patterns of pruned parameters
  /// quant.train; null: trained in floats.
  std::shared_ptr<const quant::FakeQuantization> quantization;
  std::optional<Distillation> distillation;  ///< quant.train.teacher
  bool deterministic = false;                ///< reject operations whose bits differ between runs
  compiler::CompileOptions compile;
  bool adapt_threads = false;      ///< SessionOptions::adapt_threads
  KindChoice tables = {"memory"};  ///< where the rows of tables are kept (table_kinds)
  std::vector<TablePolicy> table_policies;
  ParameterServer parameter_server;
  Interval table_day;        ///< after which a day of the tables is over
  int64_t table_deltas = 0;  ///< checkpoints with changed rows only between whole ones
  std::string kernel_table;  ///< file of kernel choices, or ""
  ParallelConfig parallel;

  const lang::Program& exported() const { return *models.front().program; }
};

/// The fields of the data that models take.
std::vector<std::string> model_inputs(const RunConfig& config);
/// "float32", "float64", "bfloat16" or "float16", for records of the run.
std::string precision_name(const RunConfig& config);
/// The schema of the whole document.
const config::Schema& run_schema();
/// Whether a file is the config of a run, not a model, by its keys.
bool is_config(const std::string& path);
/// Reads a config with its overrides. All errors are thrown as one kConfig.
RunConfig read_config(const std::string& path, const std::vector<std::string>& overrides);

}  // namespace paddle::train
