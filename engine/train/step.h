#pragma once
// The code of a training step, written once against Tensor: forward, loss, backward, clipping
// and update; the same in parts for gradient accumulation; and the evaluation. Under a tracer it
// becomes a function of the module, eagerly it simply runs.

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
#include "program/parameter_binding.h"
#include "train/metric_call.h"

namespace paddle {
struct RowSparse;
}

namespace paddle::train {

/// Products and, at level O2 (`cast.all_low`), all but a few operations in 16 bits. At level O2 the
/// parameters are kept in 16 bits too, beside masters in float32 that the optimizer updates; those
/// of normalization stay float32.
struct MixedPrecision {
  autograd::AutocastOptions cast;
  std::optional<optim::LossScaling> scaling;
};

struct StepDefinition {
  std::shared_ptr<const lang::Program> program;
  lang::Code loss;
  std::vector<MetricDefinition> metrics;
  std::shared_ptr<const optim::Optimizer> optimizer;
  optim::ClipOptions clip;
  std::optional<MixedPrecision> mixed = {};
};

struct StepInputs {
  std::map<std::string, Tensor> fields;  ///< of the data, by name
  Tensor learning_rate;                  ///< 0-D float32, float64 in a run in float64
  Tensor step;                           ///< 0-D int64, counts updates from 1
  Tensor weight;                         ///< 0-D float64: weight of this micro-batch in the batch
};

struct StepOutputs {
  Tensor loss;                       ///< 0-D
  std::vector<BoundMetric> metrics;  ///< of all metrics' calls, in order
  lang::NamedValues names;           ///< what the loss could name: fields and outputs
};

class Step {
 public:
  explicit Step(StepDefinition definition) : d_(std::move(definition)) {}
  const StepDefinition& definition() const { return d_; }

  /// The loss alone, without metrics in training.
  StepOutputs forward(program::ParameterBinding& ports, const StepInputs& inputs,
                      bool training) const;
  /// A whole update from one batch.
  StepOutputs train(program::ParameterBinding& ports, const StepInputs& inputs) const;
  /// Adds the gradients of a micro-batch, times its weight, to the accumulated ones.
  StepOutputs accumulate(program::ParameterBinding& ports, const StepInputs& inputs) const;
  /// Updates from the accumulated gradients and clears them. `parameters`: all that have some.
  void apply(program::ParameterBinding& ports, const StepInputs& inputs,
             const std::vector<std::string>& parameters) const;
  StepOutputs evaluate(program::ParameterBinding& ports, const StepInputs& inputs) const;

 private:
  std::vector<std::string> trainable(const program::ParameterBinding& ports) const;
  Tensors gradients(program::ParameterBinding& ports, const Tensor& loss,
                    const std::vector<std::string>& names) const;
  /// Counts the reads of each row of a table whose gradient is row-sparse: the update from several
  /// micro-batches leaves the same rows alone as the one from the whole batch.
  void note_touched_rows(program::ParameterBinding& ports, const std::string& name,
                         const RowSparse& rows) const;
  /// The accumulated gradient, row-sparse where touched rows were counted.
  Tensor accumulated(program::ParameterBinding& ports, const std::string& name) const;
  /// `unscaled`: the gradients are those of the loss itself, not of the scaled one.
  void update(program::ParameterBinding& ports, const StepInputs& inputs,
              const std::vector<std::string>& names, const Tensors& gradients, bool unscaled) const;
  const optim::LossScaling* scaling() const {
    return d_.mixed && d_.mixed->scaling ? &*d_.mixed->scaling : nullptr;
  }
  StepDefinition d_;
};

}  // namespace paddle::train
