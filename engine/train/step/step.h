#pragma once
// The code of a training step, written once against Tensor: forward, loss, backward, clipping
// and update; the same in parts for gradient accumulation; and the evaluation. Under a tracer it
// becomes a function of the module, eagerly it simply runs.

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "autograd/autocast.h"
#include "lang/eval/evaluator.h"
#include "lang/syntax/program.h"
#include "optim/loss_scaler.h"
#include "optim/optimizer.h"
#include "program/model_config.h"
#include "program/parameter_binding.h"
#include "program/predict_config.h"
#include "train/step/distillation.h"
#include "train/step/metric_call.h"
#include "train/step/step_body.h"
#include "train/weights/adapters.h"

namespace paddle {
struct RowSparse;
}

namespace paddle::train {

/// Products and, at level O2 (`cast.all_low`), all but a few operations in 16 bits. At level O2 the
/// parameters are kept in 16 bits too, with masters in float32 that the optimizer updates; those
/// of normalization stay float32.
struct MixedPrecision {
  autograd::AutocastOptions cast;
  std::optional<optim::LossScaling> scaling;
};

/// Makes an interpreter that changes what the forward pass and the loss compute (mixed precision,
/// fake quantization, observers). Updates and the gradients that they compute run below it.
using InterpreterFactory =
    std::function<std::unique_ptr<Interpreter>(program::ParameterBinding& ports, bool training)>;

/// The state with the norm of all gradients of the last update, before clipping.
inline constexpr const char* kGradientNorm = "train/gradient_norm";

struct NamedOptimizer {
  std::string name;  ///< "" for the only one of a config with `optimizer:`
  std::shared_ptr<const optim::Optimizer> optimizer;
};

/// The average of the weights over updates, which evaluation uses: an exponential moving one, or an
/// equal one of the weights after update `start` and every `every` updates from there.
struct Averaging {
  double decay = 0.999;
  bool warmup = true;  ///< update t keeps at most (1 + t) / (10 + t), so that short runs forget
                       ///< their initial weights
  int64_t start = 0, every = 0;  ///< of an equal average; otherwise 0
};

struct StepDefinition {
  std::vector<program::NamedModel> models;  ///< the first one is exported
  lang::Code loss;
  std::vector<MetricDefinition> metrics;
  std::vector<NamedOptimizer> optimizers;
  optim::ClipOptions clip;
  std::optional<MixedPrecision> mixed = {};
  std::optional<Averaging> average = {};
  /// Patterns of parameters whose elements that are zero stay zero: pruned weights.
  std::vector<std::string> keep_zeros = {};
  std::optional<Adapters> adapters = {};
  std::optional<Distillation> distillation = {};  ///< the last of `models` teaches the first one
  std::optional<program::Prediction> prediction = {};  ///< of `predict:`, which metrics may name
  bool keeps_gradient_norm = false;                    ///< of each step, in the state kGradientNorm
  bool skips_nonfinite = false;                        ///< updates with NaN or infinite gradients
  /// Values from the data that the loss and the metrics may name: `class_weights`.
  std::vector<std::pair<std::string, Array>> constants = {};
  std::vector<InterpreterFactory> interpreters = {};  ///< the last one sees calls first

  const lang::Program& exported() const { return *models.front().program; }
  /// How losses are scaled and updates skipped; null: neither.
  const optim::LossScaling* scaling() const;
  /// Whether no optimizer changes the parameter or state.
  bool is_frozen(const std::string& path) const;
};

struct StepInputs {
  std::map<std::string, Tensor> fields;  ///< of the data, by name
  Tensors learning_rates;  ///< of each optimizer: 0-D float32, float64 in a run in float64
  Tensor step;             ///< 0-D int64, counts steps from 1
  Tensor weight;           ///< 0-D float64: weight of this micro-batch in the batch
  /// The value of `step`, which decides about updates with `every=`; 0: all of them are due.
  int64_t step_number = 0;
  /// Of an update from accumulated gradients: the sum of squares of the gradients of each table,
  /// 0-D float64. Empty unless norms are wanted.
  std::vector<std::pair<std::string, Tensor>> table_squares = {};
};

/// An update with `every=`: a trace is valid for the steps at which it is due (or is not).
struct UpdateCondition {
  int64_t every = 1;
  bool due = true;
  bool holds(int64_t step) const { return (step % every == 0) == due; }
};

/// An update that the step contains.
struct UpdateKind {
  size_t optimizer = 0;
  int64_t every = 1;
  bool is_due(int64_t step) const { return step % every == 0; }
};

/// The gradient for the rows of a lookup, which the session hands to the table.
struct TableGradient {
  std::string table, field;
  Tensor rows;  ///< [n, width]: for each key
};

struct StepOutputs {
  Tensor loss;                       ///< 0-D; the sum over the updates of a step
  Tensors losses;                    ///< of each optimizer, 0-D; empty unless they have names
  std::vector<BoundMetric> metrics;  ///< of all metrics' calls, in order
  lang::NamedValues names;           ///< what the loss could name: fields and outputs
  Tensor prediction;                 ///< of `predict`: the output with the scores
  std::vector<UpdateCondition> conditions;
  std::vector<UpdateKind> updates;  ///< of the step, in order
  /// Of an accumulation: the parameters whose gradients were added, and the values as which those
  /// are read that an earlier update has changed.
  std::vector<std::string> accumulated;
  Tensors reread;
  std::vector<TableGradient> tables;  ///< of a whole step or an accumulation
  /// Of an update from accumulated gradients: the factor of each of `table_squares`, 0-D.
  std::vector<std::pair<std::string, Tensor>> table_scales;
  /// Of `output_gradients`: for outputs of the exported model by name.
  std::vector<std::pair<std::string, Tensor>> gradients;
};

class Step {
 public:
  explicit Step(StepDefinition definition);
  Step(const Step&) = delete;
  Step& operator=(const Step&) = delete;
  const StepDefinition& definition() const { return d_; }

  /// The loss only, without metrics in training.
  StepOutputs forward(program::ParameterBinding& ports, const StepInputs& inputs,
                      bool training) const {
    return run(ports, inputs, training, nullptr);
  }
  /// The optimizer that evaluates the loss several times in an update; null: none.
  const optim::Optimizer* minimizer() const;
  /// A whole step from one batch, with its updates in order. With a minimizer, one evaluation of
  /// the loss: its gradients, times the weight, are added to the accumulated ones.
  StepOutputs train(program::ParameterBinding& ports, const StepInputs& inputs) const;
  /// Adds the gradients of a micro-batch for one of the step's updates, times its weight, to the
  /// accumulated ones; the loss is that of the update. Earlier updates of the step have been
  /// applied.
  StepOutputs accumulate(program::ParameterBinding& ports, const StepInputs& inputs,
                         size_t update = 0) const;
  /// Updates from the accumulated gradients and clears them. `parameters`: all that have some.
  StepOutputs apply(program::ParameterBinding& ports, const StepInputs& inputs, size_t optimizer,
                    const std::vector<std::string>& parameters) const;
  StepOutputs evaluate(program::ParameterBinding& ports, const StepInputs& inputs) const;
  /// The exported model in evaluation: the output that the section `predict:` calls scores.
  StepOutputs predict(program::ParameterBinding& ports, const StepInputs& inputs) const;
  /// The loss of an evaluation with its gradients for those outputs of the exported model that it
  /// depends on. kConfig for a step that computes its updates itself.
  StepOutputs output_gradients(program::ParameterBinding& ports, const StepInputs& inputs) const;
  /// Why no table can be trained by this step (`sparse_embedding`); "" if it can.
  std::string tables_rejection() const;
  /// Whether an update reads norms of gradients. Those of tables are known when all ranks and
  /// micro-batches have computed theirs.
  bool reads_norms() const { return d_.clip.norm || d_.clip.global_norm || d_.keeps_gradient_norm; }
  /// The state that counts the updates of an optimizer with a name.
  static std::string counter(const std::string& optimizer);
  /// The name of a state of the optimizer without a name, of a parameter.
  static std::string optimizer_state(const std::string& parameter, const std::string& slot);
  /// The state with the accumulated gradient of a parameter.
  static std::string gradient_state(const std::string& parameter);
  /// The states of a parameter that start as copies of it. They need values before the first step.
  std::vector<std::string> copies(const std::string& parameter, const Dims& shape) const;

 private:
  /// The interpreters of the definition and what the language takes in a step, while it lives.
  class Scope;
  /// The output with the scores of `predict:`, from the exported model.
  Tensor scores(const StepInputs& inputs, const lang::EvaluationOptions& options,
                const std::string& output) const;
  /// Gives `predicted` a meaning if metrics use the name and nothing else has it.
  PredictedTokens name_predicted(const StepInputs& inputs, const lang::EvaluationOptions& options,
                                 lang::NamedValues& names) const;
  /// Gets each update of the step, with its number and whether it is due.
  using OnUpdate = std::function<void(const UpdateCall&, size_t number, bool is_due)>;
  StepOutputs run(program::ParameterBinding& ports, const StepInputs& inputs, bool training,
                  const OnUpdate& on_update) const;
  void add_gradients(program::ParameterBinding& ports, const StepInputs& inputs,
                     const UpdateCall& call, StepOutputs& out) const;
  /// The parameters that an update changes. kConfig if a pattern matches none.
  std::vector<std::string> trainable(const program::ParameterBinding& ports,
                                     const UpdateCall& call) const;
  /// Those for `rows` come last.
  Tensors gradients(program::ParameterBinding& ports, const Tensor& loss,
                    const std::vector<std::string>& names, const Tensors& rows = {}) const;
  /// The whole step's update of parameters, with the gradients for tables.
  void update_all(program::ParameterBinding& ports, const StepInputs& inputs,
                  const UpdateCall& call, std::vector<TableGradient>& tables) const;
  /// Counts the reads of each row of a table whose gradient is row-sparse: the update from several
  /// micro-batches leaves the same rows unchanged as the one from the whole batch.
  void note_touched_rows(program::ParameterBinding& ports, const std::string& name,
                         const RowSparse& rows) const;
  /// The accumulated gradient, row-sparse where touched rows were counted.
  Tensor accumulated(program::ParameterBinding& ports, const std::string& name) const;
  /// `unscaled`: the gradients are those of the loss itself, not of the scaled one. There may be
  /// more gradients than names, which count for norms; `squares` are sums of squares of further
  /// ones. Gives the factors of all gradients.
  Tensors update(program::ParameterBinding& ports, const StepInputs& inputs, size_t optimizer,
                 const std::vector<std::string>& names, Tensors gradients, bool unscaled,
                 const Tensors& squares = {}) const;
  /// The gradients of a loss for the lookups of tables that training changes, after those of
  /// `names`.
  struct LossGradients {
    Tensors parameters;
    std::vector<TableGradient> tables;  ///< those that the loss depends on
    Tensors joined;                     ///< of all lookups of a table
  };
  LossGradients loss_gradients(program::ParameterBinding& ports, const UpdateCall& call,
                               const std::vector<std::string>& names) const;
  const optim::LossScaling* scaling() const { return d_.scaling(); }
  StepDefinition d_;
  /// In the order of their use by the first forward pass: the order of the layers.
  mutable std::vector<std::string> used_;
};

}  // namespace paddle::train
