#pragma once
// Runs the jobs of this rank's stages of a pipeline, in the order of the schedule.

#include <map>
#include <span>
#include <vector>

#include "train/session/step_executor.h"

namespace paddle::train {

class PipelineRunner {
 public:
  PipelineRunner(const SessionContext& context, StepCompiler& compiler, StepExecutor& executor)
      : context_(context), compiler_(compiler), executor_(executor) {}

  /// A step from micro-batches: gives the loss of the batch, on all ranks.
  double train(std::span<const std::vector<Array>> micro_batches, std::span<const double> weights,
               const StepScalars& numbers);
  /// The values of a function without a backward pass, whose inputs are filled, on all ranks.
  std::vector<Array> run_forward(CompiledFunction& c);

 private:
  /// Values of a micro-batch on this rank: between jobs, and results by output.
  struct JobValues {
    std::map<int, Array> between, results;
  };
  /// Runs a job of a micro-batch, with its messages.
  void run_job(CompiledFunction& c, const partition::Job& job, JobValues& values);
  /// Gives the result of the rank with this stage to all ranks of the axis.
  void share_result(int stage, Array& result);

  const SessionContext& context_;
  StepCompiler& compiler_;
  StepExecutor& executor_;
  std::map<int, partition::JobLists> lists_;  ///< by micro-batches
};

}  // namespace paddle::train
