// The cost of the functions of a step: memory, floating-point operations and plans.

#include <algorithm>

#include "ops/core/call.h"
#include "train/session/step_compiler.h"

namespace paddle::train {

runtime::Plan& StepCompiler::plan(StepFunction kind, const std::vector<Dims>& shapes) {
  bind_sizes(shapes);
  CompiledFunction& c = compiled(kind);
  std::vector<Layout> layouts;
  for (size_t i = 0; i < c.inputs.size(); ++i) {
    const TensorType& type = c.function->body.arguments[i]->type;
    const DType dtype = type.dtype;
    if (is_partitioned(kind))
      layouts.push_back(Layout::contiguous(dtype, concrete(type.shape)));
    else if (const auto shape = c.table_shape(static_cast<int>(i), shapes))
      layouts.push_back(Layout::contiguous(dtype, *shape));
    else if (c.field[i] >= 0)
      layouts.push_back(Layout::contiguous(dtype, shapes[static_cast<size_t>(c.field[i])]));
    else
      layouts.push_back(
          Layout::contiguous(dtype, c.stored[i] ? c.stored[i]->shape : c.inputs[i].shape));
  }
  return c.executable->plan(layouts);
}

PipelineStages::Cost StepCompiler::pipeline_cost(StepFunction kind,
                                                 const std::vector<Dims>& shapes) {
  bind_sizes(shapes);
  return stages_.cost(compiled(kind));
}

const std::string& StepCompiler::recompute_summary() const {
  return context_.is_pipelined() ? stages_.recompute_summary() : recompute_text_;
}

std::string StepCompiler::communication_summary() const {
  return (context_.is_pipelined() ? stages_.communication_summary() : communication_text_) +
         update_text_;
}

runtime::MemoryReport StepCompiler::plan_training(const std::vector<Dims>& shapes) {
  if (context_.is_pipelined()) return pipeline_cost(StepFunction::kAccumulate, shapes).memory;
  if (!accumulates()) {
    runtime::MemoryReport report = plan(StepFunction::kTrain, shapes).memory();
    // The states of a minimizer are none of the function's.
    if (context_.step->minimizer())
      report.inputs += context_.optimizer_bytes([](const std::string&) { return true; });
    return report;
  }
  runtime::MemoryReport most;
  for (phase_ = 0; phase_ < phases_.size(); ++phase_)
    if (const auto memory = plan(StepFunction::kAccumulate, shapes).memory();
        memory.total() > most.total())
      most = memory;
  phase_ = 0;
  return most;
}

double StepCompiler::training_flops(const std::vector<Dims>& shapes) {
  if (context_.is_pipelined()) return pipeline_cost(StepFunction::kAccumulate, shapes).flops;
  if (!accumulates()) return plan(StepFunction::kTrain, shapes).flops();
  double flops = 0;
  for (phase_ = 0; phase_ < phases_.size(); ++phase_)
    flops += plan(StepFunction::kAccumulate, shapes).flops();
  phase_ = 0;
  return flops;
}

runtime::MemoryReport StepCompiler::plan_evaluation(const std::vector<Dims>& shapes) {
  if (context_.is_pipelined()) return pipeline_cost(StepFunction::kEvaluate, shapes).memory;
  return plan(StepFunction::kEvaluate, shapes).memory();
}

int64_t StepCompiler::plans() const {
  int64_t count = 0;
  for (const auto& [kind, traces] : functions_)
    for (const auto& c : traces) {
      if (c->executable) count += c->executable->plans_made();
      for (const auto& [key, job] : c->jobs)
        if (job.executable) count += job.executable->plans_made();
    }
  return count;
}

size_t StepCompiler::planned_bytes() const {
  size_t bytes = 0;
  for (const auto& [kind, traces] : functions_)
    for (const auto& c : traces) {
      if (c->executable) bytes = std::max(bytes, c->executable->planned_bytes());
      for (const auto& [key, job] : c->jobs)
        if (job.executable) bytes = std::max(bytes, job.executable->planned_bytes());
    }
  return bytes;
}

}  // namespace paddle::train
