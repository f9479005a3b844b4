#pragma once
// A session runs steps on batches of host arrays: compiled (traced once per function, planned once
// per binding of dims) or eagerly. It owns no data and no schedule; the trainer drives it.

#include <map>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "train/session/alignment.h"
#include "train/session/pipeline_runner.h"
#include "train/session/step_analysis.h"
#include "train/session/step_replay.h"

namespace paddle::train {

/// A step that a device may still compute.
struct StartedStep {
  double loss = 0;             ///< of what was not left to the device
  std::vector<double> losses;  ///< by optimizer, if these have names
  /// The outputs of a step that is queued: the loss, and those by optimizer; else null.
  std::shared_ptr<runtime::OutputCopies> queued;
};

struct EvaluationResult {
  double loss = 0;  ///< of the whole batch
  std::vector<std::vector<Array>> metric_operands;
  /// For each metric, the rows of the batch that its operands are about and that this rank counts;
  /// empty if another one does.
  std::vector<RowRange> metric_rows;
};

class Session {
 public:
  Session(std::shared_ptr<const Step> step, std::vector<FieldType> fields,
          program::ParameterStore& store, SessionOptions options);
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;
  ~Session();

  /// Makes all parameters and states, and traces the training function.
  void prepare();
  /// Sets the states that start as copies of their parameters: to be called when these have their
  /// initial values, before the first step.
  void start_copies();
  /// One update from micro-batches (arrays in the order of the fields), each with its weight:
  /// its share in the batch, or 1 where the loss is a sum. Gives the loss of the batch.
  double train(std::span<const std::vector<Array>> micro_batches, std::span<const double> weights,
               const StepScalars& numbers);
  /// The same, without waiting for a device with streams, where the step is one function; else it
  /// computes the step. The device continues with the next step while the host reads the loss.
  StartedStep start(std::span<const std::vector<Array>> micro_batches,
                    std::span<const double> weights, const StepScalars& numbers);
  /// Waits for a started step and completes its losses. Errors of kernels are in the record of the
  /// device, which `check_device_errors` reads.
  static void finish(StartedStep& step);
  /// Waits for the device and throws the first error of a kernel since the last call, such as an
  /// index out of range, with its place in the model.
  void check_device_errors() const;
  /// Announces the next step, whose keys of tables then travel with the gradients of this one. All
  /// ranks announce the same steps.
  void announce(std::span<const std::vector<Array>> micro_batches);
  /// The losses of the last step by optimizer; empty unless these have names.
  std::span<const double> losses() const { return losses_; }

  /// Loss and metric operands of a batch; the arrays are valid until the next call. Each rank of
  /// the axis `data` has the operands of its own rows, where they have rows.
  EvaluationResult evaluate(const std::vector<Array>& batch);
  /// The scores that `predict:` of kind sequence reads, of a batch; valid until the next call. Each
  /// rank computes the whole batch that it is given.
  const Array& predict(const std::vector<Array>& batch);
  /// Gradients of the loss that an evaluation computes, for outputs of the exported model by name;
  /// none for an output that the loss does not depend on. The arrays are valid until the next call.
  /// Only on one rank, compiled. kConfig for a step that computes its updates itself.
  std::map<std::string, Array> output_gradients(const std::vector<Array>& batch);
  /// The divisor of this batch, where the form of the loss is kWeighted.
  double divisor(const std::vector<Array>& batch);
  /// The rows of this batch whose labels cannot be aligned, in rising order.
  std::vector<LongLabels> long_labels(const std::vector<Array>& batch);
  /// The mean and the (biased) variance, per channel, of this batch in each norm of the forward
  /// pass in training, by the names of the states with the running ones; in memory of the host. A
  /// norm that is called several times gives several. Parameters and states stay as they are.
  /// `number` counts the batches and chooses random numbers.
  std::vector<std::pair<std::string, Array>> batch_statistics(const std::vector<Array>& batch,
                                                              int64_t number);

  const std::vector<FieldType>& fields() const { return context_.fields; }
  /// The tables of the models (`sparse_embedding`), which are kept next to the store.
  Tables& tables() { return tables_.tables(); }
  const Tables& tables() const { return tables_.tables(); }
  ShardedStore& shards() { return shards_; }
  StepCompiler& compiler() { return compiler_; }
  const StepCompiler& compiler() const { return compiler_; }
  StepAnalysis& analysis() { return analysis_; }
  StepReplay& replay() { return replay_; }

 private:
  /// Mixed precision: stores parameters in 16 bits with float32 masters, and sets the loss scale.
  void init_mixed_precision();
  /// The states of a minimizer, for all parameters that are not frozen.
  void make_minimizer_states();
  /// An update by the optimizer that evaluates the loss several times.
  double minimize(std::span<const std::vector<Array>> micro_batches,
                  std::span<const double> weights, const StepScalars& numbers);
  /// Adds up the gradients of micro-batches and updates with them, for each update of the step;
  /// returns the loss.
  double train_accumulated(std::span<const std::vector<Array>> micro_batches,
                           std::span<const double> weights, const StepScalars& numbers);
  /// The update of parameters from accumulated gradients, then that of the tables.
  void apply_accumulated(const StepScalars& numbers);
  /// The loss of a micro-batch.
  double run_micro_batch(StepFunction kind, const std::vector<Array>& batch,
                         const StepScalars& numbers, double weight, uint64_t counter);
  /// Starts a step that other ranks follow.
  void begin_step(const StepScalars& numbers);
  /// Reads the rows of tables for all micro-batches of a training step.
  void read_tables(StepFunction kind, std::span<const std::vector<Array>> micro_batches);

  SessionContext context_;
  ShardedStore shards_;
  TableClient tables_;
  StepCompiler compiler_;
  StepExecutor executor_;
  PipelineRunner pipeline_;
  StepAnalysis analysis_;
  StepReplay replay_;
  std::vector<double> losses_;
  Array prediction_;
};

}  // namespace paddle::train
