#pragma once
// Runs functions of a step on a batch: compiled, or operation by operation.

#include <vector>

#include "train/session/step_compiler.h"

namespace paddle::train {

class StepExecutor {
 public:
  StepExecutor(const SessionContext& context, StepCompiler& compiler, TableClient& tables)
      : context_(context), compiler_(compiler), tables_(tables) {}

  /// Fills the inputs of a function. `weight`: of a micro-batch in its batch; `counter` chooses the
  /// random numbers.
  void fill_inputs(CompiledFunction& c, const std::vector<Array>& batch, const StepScalars& numbers,
                   double weight, uint64_t counter);
  /// The outputs of a compiled function, valid until its next run.
  const std::vector<Array>& run(CompiledFunction& c, const std::vector<Array>& batch,
                                const StepScalars& numbers, double weight, uint64_t counter);
  /// The same of the function for this batch, with numbers that an evaluation has.
  const std::vector<Array>& run(StepFunction kind, const std::vector<Array>& batch);
  /// Runs operation by operation; `watch`, if there is one, sees the calls before.
  StepOutputs run_eager(StepFunction kind, const std::vector<Array>& batch,
                        const StepScalars& numbers, double weight, uint64_t counter,
                        Interpreter* watch = nullptr);

 private:
  const SessionContext& context_;
  StepCompiler& compiler_;
  TableClient& tables_;
};

}  // namespace paddle::train
