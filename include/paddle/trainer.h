#pragma once
// Trainer: a training run from a config file, as `paddle-train` does it.
//
//   paddle::TrainOptions options;
//   options.output = "runs/digits";
//   options.overrides = {"train.epochs=3"};
//   options.on_log = [](const paddle::LogLine& line) { std::printf("%g\n", line.loss); };
//   const paddle::TrainResult result = paddle::Trainer("digits.yaml", options).run();
//
// A program with a loop of its own takes the steps one by one:
//
//   paddle::Trainer trainer("digits.yaml", options);
//   while (const auto step = trainer.step())
//     if (step->loss < 0.1) break;
//   trainer.finish();
//
// A Trainer belongs to one thread; callbacks are called on the thread that called `run`. The
// library installs no signal handlers and prints nothing.

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "paddle/config.h"

namespace paddle::v0 {

struct TrainStep;

/// A line of the run's `metrics.jsonl`.
struct LogLine {
  std::string kind;  ///< "train" or "valid"
  int64_t step = 0, epoch = 0;
  double loss = 0, learning_rate = 0;
  double samples_per_second = 0;
  double seconds = 0;  ///< of training so far
  std::vector<std::pair<std::string, double>> metrics;
};

struct TrainOptions {
  std::vector<std::string> overrides;  ///< "optimizer.lr=1e-3": any value of the config
  std::string output;                  ///< run folder; "": runs/<config name>
  bool resume = false;                 ///< continue from the newest checkpoint of `output`
  bool overwrite = false;              ///< replace a run that is in `output`
  bool eager = false;                  ///< operation by operation, without compiling the step
  std::string initial_weights;         ///< safetensors file
  std::vector<std::string> allow_missing, allow_unused;  ///< patterns for `initial_weights`
  std::string device = "cpu";                            ///< that computes, one of `devices()`
  uint64_t memory = 0;  ///< bytes that a compiled step may need; 0: what the device has

  /// Called for each line of the log. An exception thrown in a callback ends the run and comes out
  /// of `Trainer::run`; the last checkpoint stays valid.
  std::function<void(const LogLine&)> on_log;
  /// Called by `run` after each step; the run then waits for the loss of each.
  std::function<void(const TrainStep&)> on_step;
  /// Called with the folder of each checkpoint that is complete.
  std::function<void(const std::string&)> on_checkpoint;
  std::function<void(const std::string&)> on_note, on_warning;
};

struct TrainResult {
  int64_t steps = 0;
  std::string run_folder, model_folder, checkpoint;
  std::vector<LogLine> log;           ///< of this call, in order
  std::optional<LogLine> last_valid;  ///< the last evaluation, if the config has `data.valid`
};

/// A step of `Trainer::step`.
struct TrainStep {
  int64_t step = 0;   ///< counts from 1; a run that is resumed continues to count
  int64_t epoch = 0;  ///< whole passes over the data
  double loss = 0, learning_rate = 0;
  std::optional<LogLine> evaluation;  ///< if the config wants one after this step
};

class PADDLE_API Trainer {
 public:
  /// Reads and checks the config. ConfigError lists everything that is wrong with it.
  explicit Trainer(const std::string& config, TrainOptions options = {});
  ~Trainer();
  Trainer(Trainer&&) noexcept;
  Trainer& operator=(Trainer&&) noexcept;

  const std::string& name() const;
  /// The config with defaults and overrides filled in, as YAML.
  std::string resolved_config() const;
  /// Trains to the end of the config. May be called once. UsageError if `output` holds another run,
  /// DataError for broken data, DeviceError for a full disk or too little memory.
  TrainResult run();

  // In place of `run`, step by step. Log lines, evaluations and checkpoints come when the config
  // wants them. Errors as those of `run`; the last checkpoint stays valid.
  /// Trains on the next batch; nothing at the end of the config, or of the data. The first call
  /// opens the data and the run folder.
  std::optional<TrainStep> step();
  /// Writes a checkpoint of the last step; its path. UsageError before the first step.
  std::string save();
  /// Ends the run, which may have further steps: writes its checkpoint and the model. A Trainer
  /// that is destroyed without it leaves a run that can be resumed from its last checkpoint.
  TrainResult finish();

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace paddle::v0
