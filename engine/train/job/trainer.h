#pragma once
// The training job: loads data, runs steps, evaluates, logs and checkpoints, and stops cleanly
// when asked to. It prints nothing; a TrainObserver shows what happens.

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "comm/communicator.h"
#include "compiler/pipeline.h"
#include "metrics/interval.h"
#include "program/checkpoint.h"
#include "tables/segments.h"
#include "train/config/run_config.h"
#include "train/job/servers.h"
#include "train/session/memory_plan.h"

namespace paddle::train {

struct TrainOptions {
  std::string output;      ///< run folder
  bool resume = false;     ///< continue from the newest valid checkpoint of `output`
  bool overwrite = false;  ///< a folder with checkpoints may be replaced
  bool eager = false;
  std::string initial_weights;  ///< safetensors file, or ""
  std::string fitted;           ///< what a finished run fitted (fitted.json); "": fitted again
  std::vector<std::string> allow_missing, allow_unused;
  std::string dump_ir;  ///< folder for the module after each pass, or ""
  /// Called with functions before and after each pass, when set and nothing is dumped.
  compiler::Observer observe;
  int64_t benchmark = 0;  ///< timed steps; nothing is written then
  bool profile = false;   ///< time every operation of the compiled step
  /// File for what evaluations show in detail (evaluation_details.h); "": in the run folder.
  std::string details;
  /// With `benchmark`: take batches from the loader as training does, and let this many steps pass
  /// before the timed ones. Without it, steps are timed on a few batches in memory.
  std::optional<int64_t> loaded_warm_up;
  bool dry_run = false;  ///< only to be prepared: random initial weights stay zeros
  /// The ranks of the run; null: only this process. All ranks make the same calls of a Trainer;
  /// rank 0 writes the run folder.
  std::shared_ptr<comm::Communicator> communicator;
  /// Where to end before the config's end, as after `train.max_time`: after this step, or after
  /// this share of all steps; 0: not before. A run that is resumed continues from there.
  int64_t until_step = 0;
  double until_share = 0;
  /// Those of a run that keeps the rows of tables on servers; nothing: a run of one process has
  /// them itself.
  std::optional<ServersOfRun> servers;
  /// A run that is repeated from a checkpoint of it ("": from its beginning).
  struct Replay {
    std::string run, checkpoint;
    std::vector<int64_t> fences;  ///< steps after which its workers waited for each other
    /// Workers and steps whose gradients of tables are left out.
    std::vector<std::pair<int, int64_t>> skipped;
  };
  std::optional<Replay> replay;
  std::string version;  ///< of the program and what it computes with; the same on all ranks
};

/// One line of metrics.jsonl.
struct LogLine {
  std::string kind;  ///< "train", "valid" or "test"
  int64_t step = 0, epoch = 0;
  double loss = 0, learning_rate = 0, samples_per_second = 0, seconds = 0;
  std::vector<std::pair<std::string, double>> metrics;
  /// With loss scaling, of a "train" line: the scale, and how many updates overflows have skipped.
  std::optional<double> loss_scale;
  int64_t skipped_updates = 0;
  int64_t samples = 0;                  ///< of an evaluation
  std::optional<double> gradient_norm;  ///< of the last update, where it is computed
  /// Of 95%, of metrics that have one.
  std::vector<std::pair<std::string, metrics::ConfidenceInterval>> intervals;
  /// Of an evaluation, for each metric: Evaluator::values_without.
  std::vector<std::vector<double>> values_without;
  double data_wait = 0;  ///< of a "train" line: the share of the time since the last one
};

struct Progress {
  int64_t step = 0, total_steps = 0;
  int64_t epoch = 0;
  double loss = 0, samples_per_second = 0, seconds_left = 0;
  double data_share = 0;  ///< of the time since the last log line: waiting for data
};

/// The error of a run whose loss is not finite.
class NonFiniteLoss : public Error {
 public:
  NonFiniteLoss(std::string message, int64_t step)
      : Error(ErrorCode::kData, std::move(message)), step_(step) {}
  int64_t step() const { return step_; }

 private:
  int64_t step_;
};

struct StepReport;

class TrainObserver {
 public:
  virtual ~TrainObserver() = default;
  /// Whether `step` is called after each step, whose loss is then waited for.
  virtual bool wants_steps() const { return false; }
  virtual void step(const StepReport& /*report*/) {}
  /// After a checkpoint is complete, on rank 0.
  virtual void checkpoint(const std::string& /*folder*/) {}
  virtual void note(const std::string& /*line*/) {}
  virtual void warn(const std::string& /*line*/) {}
  virtual void log(const LogLine& /*line*/) {}
  virtual void progress(const Progress& /*progress*/) {}
};

/// A step on a batch of the loader. Times in nanoseconds of the steady clock.
struct TimedStep {
  int64_t begin = 0, loaded = 0, end = 0;  ///< before the batch, with the batch, after the update
  int64_t samples = 0;
  double loss = 0;
};

/// A step with what it read, to repeat it elsewhere.
struct RecordedStep {
  int64_t step = 0;                    ///< counts from 1
  std::vector<Array> fields;           ///< the batch, in the order of the module's inputs
  std::vector<double> learning_rates;  ///< of each optimizer
  double loss = 0;
};

struct ReplayedValue;
struct NonFiniteSearch;

/// A batch with the gradients of its loss, valid while it is shown.
struct BatchGradients {
  std::map<std::string, Array> fields;   ///< of the data, by name
  std::map<std::string, Array> outputs;  ///< gradients for outputs of the model, by name
  int64_t samples = 0;
};

/// A step of a run whose caller has the loop.
struct StepReport {
  int64_t step = 0;   ///< counts from 1
  int64_t epoch = 0;  ///< whole passes over the data
  double loss = 0, learning_rate = 0;
  std::optional<LogLine> evaluation;  ///< if one was due after this step
};

struct BenchmarkResult {
  double median_ms = 0, min_ms = 0, samples_per_second = 0, first_loss = 0, last_loss = 0,
         flops = 0;
  uint64_t peak_bytes = 0;
  int64_t steps = 0, parameters = 0;
  std::vector<TimedStep> loaded;                   ///< with TrainOptions::loaded_warm_up
  std::vector<comm::ExchangeCosts> communication;  ///< of the timed steps, by rank; none for one
};

struct TrainResult {
  int64_t steps = 0;
  int stopped_by = 0;  ///< the signal, or 0
  std::string checkpoint;
  std::string model_folder;
  std::string best_folder, best;  ///< the best model, and "accuracy 0.98 at step 400"; or ""
  std::optional<LogLine> last_valid, test;
  BenchmarkResult benchmark;
  std::shared_ptr<const runtime::Profile> profile;
};

class Trainer {
 public:
  Trainer(RunConfig config, TrainOptions options, TrainObserver& observer);
  ~Trainer();
  Trainer(const Trainer&) = delete;
  Trainer& operator=(const Trainer&) = delete;

  /// Makes and locks the run folder, and notes the config in it, so that a run that is killed from
  /// here on can be resumed. kUsage if the folder has checkpoints that may not be replaced.
  void claim_folder();
  /// Opens the data, traces the step and makes the memory plan; trains nothing and writes nothing.
  MemoryPlan prepare();
  /// Summary of the run, after `prepare`: batch and micro-batches, updates, the
  /// learning rate over them, seed and threads. One line each.
  std::vector<std::string> run_summary() const;
  /// After `prepare`: the parameters that are split over ranks, one line each.
  std::vector<std::string> placement_lines() const;
  /// After `prepare`: the rows of each table (sparse_embedding), as files hold them.
  std::vector<tables::TableFormat> table_formats() const;
  /// After `prepare`: the memory that each rank needs, as a table; "" for one rank. All ranks must
  /// call it.
  std::string memory_by_rank();
  int64_t parameter_count() const;
  const ir::Module& module() const;
  TrainResult run();
  // In place of `run`, step by step. As there, evaluations, log lines and checkpoints follow when
  // they are due, and errors leave the last checkpoint valid.
  /// Makes the run folder, opens the data, and restores the checkpoint of a run that is resumed.
  void begin();
  /// Trains on the next batch; nothing at the end of the config or of the data. After `begin`.
  std::optional<StepReport> step();
  /// Writes a checkpoint of the last step; its path.
  std::string save();
  /// Ends the run after the last step: writes its checkpoint and the model.
  TrainResult finish();
  /// After `prepare`, in place of `run`: takes the next batch and trains on it, without evaluation,
  /// log or checkpoints. kData if the data ended.
  TimedStep timed_step();
  /// The same with the batch and the learning rates.
  RecordedStep recorded_step();
  /// After `prepare`: computes the first step after a checkpoint ("": of the run), operation by
  /// operation and in one part, and gives all values to `visit`, on rank 0; changes nothing.
  /// Returns the number of the step. All ranks must call it.
  int64_t replay(const std::string& checkpoint,
                 const std::function<void(const ReplayedValue&)>& visit);
  /// After `prepare`: see find_nonfinite.h. `checkpoint` "": from the start of the run.
  NonFiniteSearch find_nonfinite(const std::string& checkpoint, int64_t last_step,
                                 double max_seconds);
  /// Parameters, and states of model and optimizers, by path. Steps change them in place.
  const program::ParameterStore& store() const;
  /// After `prepare`, without training: the loss and the metrics on the validation data with the
  /// weights of `TrainOptions::initial_weights`. nullopt if it was interrupted.
  std::optional<LogLine> evaluate();
  /// After `prepare`, without training: shows the batches of the validation data with the gradients
  /// of the loss for the outputs of the exported model, until `use` returns false. kConfig for a
  /// step that computes its updates itself.
  void for_each_gradient(const std::function<bool(const BatchGradients&)>& use);

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace paddle::train
