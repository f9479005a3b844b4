#pragma once
// Traces, partitions and compiles the functions of a step: each once per binding of the dims and
// conditions that its trace depends on.

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/recent_list.h"
#include "ir/module.h"
#include "ir/tracer.h"
#include "partition/delayed_sums.h"
#include "program/parameter_binding.h"
#include "train/session/compiled_function.h"
#include "train/session/pipeline_stages.h"
#include "train/session/session_context.h"
#include "train/session/sharded_store.h"
#include "train/session/table_client.h"

namespace paddle::train {

/// An update of the step, when its gradients are accumulated.
struct UpdatePhase {
  UpdateKind update;
  std::vector<std::string> parameters = {};  ///< with accumulated gradients
  std::vector<std::string> tables = {};      ///< the same
};

class StepCompiler {
 public:
  StepCompiler(SessionContext& context, ShardedStore& shards, TableClient& tables);

  /// The step at hand, which decides about updates with `every=`; 0: every update is due.
  void set_step(int64_t number) { step_number_ = number; }
  int64_t step_number() const { return step_number_; }
  /// Takes the sizes of dims from a batch of these shapes.
  void bind_sizes(const std::vector<Dims>& shapes);
  /// The same of a batch; at no cost if its shapes are those of the last one.
  void bind_sizes(const std::vector<Array>& batch);

  /// The function for the batch and the step at hand.
  CompiledFunction& compiled(StepFunction kind);
  /// The same, traced but neither cached nor compiled.
  std::unique_ptr<CompiledFunction> traced(StepFunction kind, bool constant_dims);
  /// Traces and compiles a function that is not cached.
  std::unique_ptr<CompiledFunction> compile(StepFunction kind);
  /// Finds out where the inputs of a function come from.
  void connect(CompiledFunction& c);

  /// Traces a function into `f` and calls `use` while the tracer is still active; `watch`, if there
  /// is one, sees the calls before it. With `constant_dims` the dims are those of the batch at
  /// hand.
  using UseTrace = std::function<void(ir::Tracer&, program::TraceBinding&, const StepOutputs&)>;
  void trace(ir::Function& f, StepFunction kind, const UseTrace& use, Interpreter* watch = nullptr,
             bool constant_dims = false);
  /// A digest of what the forward pass and the loss compute in training, wherever their text is
  /// and whatever is frozen.
  uint32_t forward_digest();
  /// Computes a function of the step with the current interpreters.
  StepOutputs run_step(StepFunction kind, program::ParameterBinding& ports,
                       const StepInputs& inputs) const;

  /// Whether the gradients of a step are accumulated before it updates: of several micro-batches,
  /// or because norms need the gradients of tables.
  bool accumulates() const {
    return context_.options.accumulate > 1 || (context_.step->reads_norms() && !tables_.empty());
  }
  /// The updates of a step that accumulates; known with its first function.
  const std::vector<UpdatePhase>& phases() const { return phases_; }
  size_t phase() const { return phase_; }
  void set_phase(size_t phase) { phase_ = phase; }
  void record_phase(const StepOutputs& out);

  /// Whether ranks run parts of a function. What depends only on the batch they all compute whole.
  bool is_partitioned(StepFunction kind) const {
    return context_.has_ranks() && !is_of_data(kind) && kind != StepFunction::kPredict;
  }
  bool reads_local_rows_only() const;
  void expect_local_rows() { has_local_rows_only_ = true; }
  const std::vector<partition::Gathered>& gathered() const { return gathered_; }
  PipelineStages& stages() { return stages_; }
  const PipelineStages& stages() const { return stages_; }

  /// The plan of a function for a batch of these shapes.
  runtime::Plan& plan(StepFunction kind, const std::vector<Dims>& shapes);
  runtime::MemoryReport plan_training(const std::vector<Dims>& shapes);
  runtime::MemoryReport plan_evaluation(const std::vector<Dims>& shapes);
  double training_flops(const std::vector<Dims>& shapes);
  int64_t plans() const;
  size_t planned_bytes() const;
  int64_t traces() const { return traces_; }
  const ir::Module& module() const { return module_; }
  /// See Session.
  const std::string& recompute_summary() const;
  std::string communication_summary() const;

 private:
  /// The inputs of a function, in the order that `connect` expects, and its random state.
  StepInputs trace_inputs(ir::Tracer& tracer, StepFunction kind, bool constant_dims,
                          Tensor& random) const;
  /// The roles of the inputs of `trace_inputs`, in their order.
  std::vector<PortRole> input_roles(StepFunction kind) const;
  /// Replaces the function by this rank's part of it.
  void partition(CompiledFunction& c);
  /// Whether gradients of micro-batches are summed over ranks by the update only.
  bool delays_sums() const;
  /// Takes these sums out of a function of gradients, or puts them into that of their update.
  void delay_sums(StepFunction kind, ir::Function& function);
  /// Whether the fields of a partitioned function are split by rows, each rank having adjacent
  /// ones.
  bool splits_rows(const CompiledFunction& c) const;
  /// Adds a function to the module, which keeps one of each kind.
  void update_module(const CompiledFunction* added);
  PipelineStages::Cost pipeline_cost(StepFunction kind, const std::vector<Dims>& shapes);
  /// The choice of recomputation for training functions, made with the first one.
  std::optional<passes::RecomputeOptions> choose_recompute(const ir::Function& function);
  /// The memory of a function with a choice of recomputation.
  runtime::MemoryReport memory_with(const ir::Function& function,
                                    std::optional<passes::RecomputeOptions> recompute);

  SessionContext& context_;
  ShardedStore& shards_;
  TableClient& tables_;
  PipelineStages stages_;
  ir::Module module_;
  std::vector<UpdatePhase> phases_;
  size_t phase_ = 0;  ///< the one at hand
  /// A model that asks for `static(dim)` has one for each value.
  std::map<StepFunction, RecentList<std::unique_ptr<CompiledFunction>>> functions_;
  std::vector<Dims> shapes_;              ///< of the fields of the batch at hand
  std::map<std::string, int64_t> sizes_;  ///< of its dims
  int64_t step_number_ = 0;
  int64_t traces_ = 0;
  std::vector<partition::Gathered> gathered_;
  bool recompute_chosen_ = false, has_local_rows_only_ = false;
  std::string recompute_text_, communication_text_, update_text_;
  std::map<size_t, partition::DelayedSums> delayed_sums_;  ///< by phase
};

}  // namespace paddle::train
