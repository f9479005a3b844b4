#pragma once
// The stages of a pipeline: where functions are cut into jobs, which of them this rank compiles,
// and what they compute again.

#include <string>
#include <unordered_set>
#include <vector>

#include "train/session/compiled_function.h"
#include "train/session/session_context.h"
#include "train/session/sharded_store.h"

namespace paddle::train {

class PipelineStages {
 public:
  struct Cost {
    runtime::MemoryReport memory;
    double flops = 0;  ///< of this rank
  };

  PipelineStages(SessionContext& context, ShardedStore& shards)
      : context_(context), shards_(shards) {}

  /// Cuts a partitioned function into jobs, or takes this rank's part of an update. The first one
  /// is that of training, which assigns parameters to stages.
  void cut(CompiledFunction& c);
  /// The memory of a function's jobs, with what micro-batches keep between them.
  Cost cost(CompiledFunction& c) const {
    return cost(*c.cut, c.jobs, c.kind == StepFunction::kAccumulate);
  }
  /// How the stages divide the step, a line each; none without a pipeline.
  std::vector<std::string> summary() const;
  /// The effect of recomputation in one line; "" without it.
  const std::string& recompute_summary() const { return recompute_text_; }
  /// The bytes that this rank sends in a micro-batch, in one line; "" before the first function.
  const std::string& communication_summary() const { return communication_text_; }

 private:
  Cost cost(const partition::StageCut& cut, StageJobs& jobs, bool training) const;
  /// This rank's part of an update from accumulated gradients.
  void take_update(CompiledFunction& c) const;
  /// The jobs of this rank's stages. `observes`: they are the ones that will run. `first_tag`: of
  /// their messages.
  StageJobs compile_jobs(const partition::StageCut& cut, bool observes,
                         int64_t first_tag = 0) const;
  /// The values that the stages compute again; sets the line of `recompute_summary`.
  std::unordered_set<const ir::Value*> dropped_values(ir::Function& function);
  /// For each rank of the axis, how many of its layers it computes again to stay within the budget.
  std::vector<int64_t> layers_for_budget(
      const ir::Function& function,
      const std::vector<std::vector<std::unordered_set<const ir::Value*>>>& layers);
  partition::PipelineShape shape() const;

  SessionContext& context_;
  ShardedStore& shards_;
  partition::LeafStages leaves_;
  std::map<std::string, int> owners_;  ///< stage of each parameter and state
  bool recompute_chosen_ = false;
  std::vector<int64_t> recomputed_layers_;  ///< by rank of the axis, within a budget
  std::string recompute_text_, communication_text_;
};

}  // namespace paddle::train
