#pragma once
// The implementation of Trainer: the state of a training job and its parts, setting up
// (trainer_setup.cc, trainer_data.cc, trainer_weights.cc, trainer_evaluators.cc), its folder
// (trainer_folder.cc) and description (trainer_summary.cc), the loop with evaluation and
// checkpoints (trainer.cc, trainer_steps.cc), averages (trainer_averages.cc), and the benchmark
// (trainer_benchmark.cc).

#include <chrono>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/elapsed.h"
#include "train/evaluation/evaluation_details.h"
#include "train/evaluation/evaluator.h"
#include "train/evaluation/written_tokens.h"
#include "train/job/checkpoint_in_progress.h"
#include "train/job/resume.h"
#include "train/job/trainer.h"
#include "train/records/metrics_log.h"
#include "train/records/tensorboard.h"
#include "train/runs/digests.h"
#include "train/runs/run_folder.h"
#include "train/session/session.h"

namespace paddle::train {

using Clock = std::chrono::steady_clock;

class Trainer::Impl {
 public:
  Impl(RunConfig config, TrainOptions options, TrainObserver& observer)
      : config_(std::move(config)),
        options_(std::move(options)),
        observer_(observer),
        communicator_(options_.communicator ? options_.communicator
                                            : std::make_shared<comm::Communicator>()),
        folder_(options_.output) {
    if (options_.profile) profile_ = std::make_shared<runtime::Profile>();
  }

  void claim_folder();
  MemoryPlan prepare();
  TrainResult run();
  void begin();
  std::optional<StepReport> step();
  /// Trains on the next batch; nothing at the end of the run.
  std::optional<StepReport> next_step();
  std::string save();
  TrainResult finish_steps();
  TimedStep timed_step();
  RecordedStep recorded_step();
  int64_t replay(const std::string& checkpoint,
                 const std::function<void(const ReplayedValue&)>& visit);
  NonFiniteSearch find_nonfinite(const std::string& checkpoint, int64_t last_step,
                                 double max_seconds);
  std::optional<LogLine> evaluate();
  int64_t parameter_count() const;
  void for_each_gradient(const std::function<bool(const BatchGradients&)>& use);
  const ir::Module& module() const { return session_->compiler().module(); }
  const program::ParameterStore& store() const { return store_; }
  std::vector<std::string> run_summary() const;
  std::vector<std::string> placement_lines() const;
  std::vector<tables::TableFormat> table_formats() const { return session_->tables().formats(); }
  std::string memory_by_rank();

 private:
  struct PartTimes {
    double data = 0, compute = 0;
    /// The share of the time that went by waiting for data.
    double data_share() const { return data + compute > 0 ? data / (data + compute) : 0; }
  };
  void open_loaders();
  /// Opens the file with the matrices that stay packed (`lora.weights_as`).
  void open_packed_base();
  /// Looks for bad samples before the first step, for `data.check_seconds`, and treats them by the
  /// policies of the data.
  void scan_data();
  /// Makes loaders check that labels fit the output of a loss that aligns them; nothing if there is
  /// no such loss.
  data::Loader::BatchCheck watch_alignments();
  /// How weights are averaged, in updates; the data is open.
  std::optional<Averaging> averaging() const;
  /// Makes room for the running statistics that go with averaged weights.
  void open_running_statistics();
  /// These statistics by state: the mean over the batches of one epoch. Nothing if a signal stopped
  /// the run. All ranks must call it.
  std::optional<std::map<std::string, Array>> averaged_statistics();
  /// Brings them up to date with this step; until the average begins, they are those of training.
  /// False if a signal stopped the run. All ranks must call it.
  bool update_running_statistics();
  void start_folder();
  void run_evaluation();
  /// The value of a metric, or of the loss, in a line.
  static double value_of(const LogLine& line, const std::string& metric);
  /// Whether this evaluation is the best so far: keeps its checkpoint and writes best/.
  void keep_best(const LogLine& line);
  /// Takes an evaluation into account for stopping early and for rates that fall on plateaus.
  void update_early_stopping(const LogLine& line);
  /// Whether the run is over before its last update, and why.
  bool ended_early();
  /// Where the caller wants the run to end; 0: at its end.
  int64_t last_wanted_step() const;
  /// The exported model with its metadata, or all models of the run.
  /// Whether the weights of the saved model are those of a checkpoint, whose file is copied: runs
  /// of several ranks then need no rank that holds all weights.
  bool copies_weights() const;
  /// The parameters for saved models, with averages in their places; on rank 0. Without values if
  /// `copies_weights`. All ranks must call it.
  program::ParameterStore saved_store();
  void write_best(const program::ParameterStore& whole);
  void write_adapter_files(const program::ParameterStore& whole) const;
  void write_saved_model(const std::string& path, const program::NamedModel& model,
                         const program::ParameterStore& whole) const;
  template <class Body>
  auto guarded(const Body& body);
  /// One step with the evaluation and the checkpoint that are due after it; false if the data
  /// ended. `reads_loss`: its loss is read before the call returns.
  bool run_step(int64_t total, bool reads_loss);
  TrainResult finish_run();
  void finish(TrainResult& result);
  void log_failed();
  /// Writes report.html, on rank 0. A page that cannot be written gives a warning.
  void write_report(const std::string& ending) const;
  void load_initial_weights();
  /// Takes over the optimizer's states and the number of updates of a run of PaddlePaddle.
  void continue_run(const InitialWeights& init);
  /// Takes the rows of tables from a file of weights, and corrects what is unused and missing.
  void load_initial_tables(const std::string& file, program::LoadReport& report);
  void examine_loss();
  void keep_fitted();
  void check_record(const std::vector<ConfigChange>& changes);
  /// Rejects batches that occur in the run and that the model cannot take.
  void check_batches();
  /// Lets the session reach the servers of its tables, if it has some.
  void open_servers(SessionOptions& options);
  std::vector<Dims> batch_shapes(const data::Loader& loader, int64_t samples) const;
  /// The updates of the whole run; kEndless if passes of data decide.
  int64_t total_steps() const;
  static constexpr int64_t kEndless = int64_t{1} << 40;
  /// " of 1000", for messages; "" for a run without a limit.
  std::string of_total() const;
  double weight_of(const std::vector<Array>& batch);
  /// Learning rate after `updates` updates, of the first optimizer.
  double learning_rate(int64_t updates) const { return rate_of(config_.optimizers[0], updates); }
  /// `optimizer` is one of the config.
  double rate_of(const OptimizerConfig& optimizer, int64_t updates) const;
  double train_batch(const data::Batch& batch);
  /// The parts of a batch whose gradients are accumulated.
  std::vector<std::vector<Array>> micro_batches(const data::Batch& batch) const;
  StartedStep start_parts(const data::Batch& batch);
  /// The loss scale or one of its counters; none without loss scaling.
  std::optional<Array> scaling(const char* name) const;
  /// Whether the last update was skipped because gradients overflowed; reports it. kData if this
  /// repeats while the scale cannot fall.
  bool overflowed(int64_t step);
  /// For the samples of this loader, which must outlive it.
  Evaluator make_evaluator(const data::Loader& loader) const;
  void open_written_tokens();
  /// Evaluates a batch, with the tokens that the model writes where metrics compare them.
  EvaluationResult evaluate_batch(const data::Batch& batch);
  /// Runs validation, its metrics and prediction on one batch, so that what cannot work ends the
  /// run before the first step.
  void try_first_batches();
  std::optional<LogLine> evaluate(data::Loader& loader, const std::string& kind);
  /// Takes over a checkpoint, the position in the data included; nothing for "".
  void go_to(const std::string& checkpoint);
  /// The number and the learning rates of the next step; valid until the next call.
  StepScalars next_scalars();
  /// Tells tables that ranks share the keys of the batch after the one at hand.
  void announce_next(int64_t total);
  void check_replayed_run() const;
  /// Starts the step of a batch; see Session::start.
  StartedStep start_step(const data::Batch& batch);
  /// Reads the losses of started steps, but of the last `left` ones. At one that is not finite the
  /// run stops (NonFiniteLoss), or continues from its newest checkpoint: then true.
  bool read_losses(size_t left);
  /// Goes back to the newest checkpoint after a loss that is not finite; false if there is none, or
  /// after too many times.
  bool roll_back(int64_t step);
  /// Adds what the other ranks have counted.
  void merge_over_ranks(Evaluator& metrics, EvaluationDetails& details);
  void write_details(const EvaluationDetails& details, const LogLine& line,
                     const data::Dataset& dataset) const;
  void log(LogLine line);
  void log_train();
  /// Notes the digests of this step, where the config asks for them. All ranks must call it.
  void write_digests();
  /// Writes a checkpoint of this step, or begins to where `train.checkpoint_async` is set. All
  /// ranks must call it, as well as the two below. The path of the checkpoint.
  std::string checkpoint();
  /// Begins the next part of a checkpoint if this one is done on all ranks.
  void advance_checkpoint();
  /// Waits for it.
  void complete_checkpoint();
  /// Begins the next part of it: after the tensors, on rank 0, checksums and its final place.
  void continue_checkpoint();
  /// Publishes a version for serving if one is due; at the end of a run in any case.
  void publish_version(bool epoch_ended, bool run_ended);
  void write_version(const std::string& saved, bool base);
  /// Publishes the version that a killed run had begun.
  void begin_publishing();
  bool is_publish_due(const PublishInterval& every, bool epoch_ended) const;
  void write_skipped() const;
  void report_progress(bool always);
  bool due(const Interval& every, bool epoch_ended) const;
  void end_table_day();
  // Passes (trainer_passes.cc).
  enum class Arrival { kReady, kMissing, kStopped };
  /// Chooses the files that types and shapes are taken from, before the data is opened. kData if no
  /// pass comes.
  void find_first_pass();
  /// The value of rank 0, on all ranks.
  bool on_any_rank(bool value);
  Arrival wait_for_pass(int64_t number);
  /// Ends the days of the tables that are over before this pass.
  void end_pass_days(int64_t next);
  /// Opens the pass of the position, or the next one that comes, and evaluates it if asked; false
  /// after the last one and when the run is to stop. All ranks must call it.
  bool open_pass();
  /// The next batch, of the next pass where one is over; none when the data ends.
  std::optional<data::Batch> next_batch();
  /// kConfig for a name or pattern of `tables:` that no table has.
  void check_table_policies() const;
  /// kUsage if the rows of this table are not on servers.
  void check_watched_table(const std::string& table) const;
  BenchmarkResult benchmark();
  /// After the warm-up of a benchmark.
  void begin_timing();
  /// The steps of a benchmark, in milliseconds: on batches in memory, or as training takes them.
  std::vector<double> steps_in_memory(BenchmarkResult& result);
  std::vector<double> loaded_steps(BenchmarkResult& result);
  /// kConfig if the ranks were started with different configs or models.
  void compare_ranks();
  /// Lets the loader read this rank's rows of a batch only, where that is all that it needs.
  void read_own_rows();
  /// Restores the newest good checkpoint, which rank 0 chooses; false if there is none.
  bool restore();
  /// Reports values that are gathered for operations without a rule; in a dry run, all that are
  /// gathered.
  void report_partition();
  /// With several ranks: keeps the exchanges of this one in the folder of the run.
  void keep_flight_record();
  /// The signal that asked any rank to stop, or 0. All ranks must ask.
  int stop_signal();

  RunConfig config_;
  TrainOptions options_;
  TrainObserver& observer_;
  /// Steps whose losses were not read yet, with their numbers.
  std::deque<std::pair<int64_t, StartedStep>> started_steps_;
  std::shared_ptr<comm::Communicator> communicator_;
  program::ParameterStore store_;
  std::shared_ptr<Step> step_;
  std::unique_ptr<Session> session_;
  std::unique_ptr<data::Loader> loader_, valid_loader_, test_loader_;
  std::vector<MetricBinding> metric_bindings_;
  std::optional<WrittenTokens> written_tokens_;  ///< where a metric compares such
  std::set<std::string> warnings_shown_;
  std::unique_ptr<MetricsLog> metrics_;
  std::unique_ptr<DigestLog> digests_;
  std::unique_ptr<EventWriter> events_;
  program::RunState state_;
  std::vector<std::string> running_statistics_;  ///< that averaged weights have of their own
  int64_t statistics_step_ = -1;                 ///< for which they were computed
  std::optional<LogLine> last_valid_;
  PartTimes times_;
  Clock::time_point started_, last_progress_, window_start_, published_at_;
  int64_t published_day_ = 0;
  int64_t window_samples_ = 0;
  int64_t log_every_ = 1;      ///< updates
  std::vector<double> rates_;  ///< of the step at hand, by optimizer
  double seconds_before_ = 0, last_loss_ = 0;
  int64_t pass_ = -1;  ///< that `loader_` reads
  std::vector<int64_t> missing_passes_;
  int64_t rollbacks_ = 0;
  int64_t skipped_updates_ = 0,
          consecutive_skips_ = 0;  ///< with loss scaling: at the smallest scale
  double last_scale_ = 0;
  std::optional<MemoryPlan> plan_;
  program::FieldUse use_;
  LossForm loss_form_;
  RunFolder folder_;
  std::shared_ptr<runtime::Profile> profile_;
  int stopped_by_ = 0;
  bool claimed_ = false;
  bool begun_ = false, ended_ = false;  ///< of the steps
  int64_t other_metrics_ = 0;  ///< 1: what evaluations watched before the resume no longer counts
  std::string end_reason_;     ///< of a run that ended before its last update
  bool tables_apart_ = false;  ///< checkpoints hold tables in files of their own
  bool written_ = false;       ///< the checkpoint of this step, with all that belongs to it
  std::unique_ptr<CheckpointInProgress> pending_;
};

}  // namespace paddle::train
