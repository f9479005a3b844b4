#pragma once
// A step computed operation by operation on one batch: to find where two runs part, and where a NaN
// comes from. Parameters and states stay as they are.

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "train/session/nonfinite.h"
#include "train/session/step_executor.h"

namespace paddle::train {

/// A result of an operation of a step, or a field of its batch.
struct ReplayedValue {
  std::string operation, location;
  TensorType type;
  Array whole;
};

class StepReplay {
 public:
  StepReplay(const SessionContext& context, StepCompiler& compiler, StepExecutor& executor,
             ShardedStore& shards, TableClient& tables)
      : context_(context),
        compiler_(compiler),
        executor_(executor),
        shards_(shards),
        tables_(tables) {}

  /// Passes the fields of a batch and then all results of a step on it to `visit`, on rank 0.
  void run(const std::vector<Array>& batch, const StepScalars& numbers,
           const std::function<void(const ReplayedValue&)>& visit);
  /// Computes a step up to the first NaN, and gives the operation that NaN or infinity comes from;
  /// nullopt if there are none. Infinities that no later operation turns into NaN and that do not
  /// reach a result of the step are none: masks have them. On one rank.
  std::optional<NonFiniteOrigin> find_nonfinite(const std::vector<Array>& batch,
                                                const StepScalars& numbers);

 private:
  /// The training step, traced but not compiled, with its inputs for a batch.
  std::unique_ptr<CompiledFunction> traced_with_inputs(const std::vector<Array>& batch,
                                                       const StepScalars& numbers);

  const SessionContext& context_;
  StepCompiler& compiler_;
  StepExecutor& executor_;
  ShardedStore& shards_;
  TableClient& tables_;
};

}  // namespace paddle::train
