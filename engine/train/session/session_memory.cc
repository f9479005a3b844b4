// The cost of a session's functions: memory, floating-point operations and plans.

#include <algorithm>

#include "ops/core/call.h"
#include "train/session/compiled_part.h"
#include "train/session/session.h"

namespace paddle::train {

runtime::Plan& Session::plan(Part part, const std::vector<Dims>& shapes) {
  bind_sizes(shapes);
  Compiled& c = compiled(part);
  std::vector<Layout> layouts;
  for (size_t i = 0; i < c.inputs.size(); ++i) {
    const TensorType& type = c.function->body.arguments[i]->type;
    const DType dtype = type.dtype;
    if (is_partitioned(part))
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

runtime::MemoryReport Session::plan_training(const std::vector<Dims>& shapes) {
  if (is_pipelined()) return plan_pipeline(Part::kAccumulate, shapes).memory;
  if (!updates_by_parts()) {
    runtime::MemoryReport report = plan(Part::kTrain, shapes).memory();
    // The states of a minimizer are none of the function's.
    if (step_->minimizer())
      report.inputs += optimizer_bytes([](const std::string&) { return true; });
    return report;
  }
  runtime::MemoryReport most;
  for (phase_ = 0; phase_ < phases_.size(); ++phase_)
    if (const auto memory = plan(Part::kAccumulate, shapes).memory(); memory.total() > most.total())
      most = memory;
  phase_ = 0;
  return most;
}

double Session::training_flops(const std::vector<Dims>& shapes) {
  if (is_pipelined()) return plan_pipeline(Part::kAccumulate, shapes).flops;
  if (!updates_by_parts()) return plan(Part::kTrain, shapes).flops();
  double flops = 0;
  for (phase_ = 0; phase_ < phases_.size(); ++phase_)
    flops += plan(Part::kAccumulate, shapes).flops();
  phase_ = 0;
  return flops;
}

runtime::MemoryReport Session::plan_evaluation(const std::vector<Dims>& shapes) {
  if (is_pipelined()) return plan_pipeline(Part::kEvaluate, shapes).memory;
  return plan(Part::kEvaluate, shapes).memory();
}

int64_t Session::plans() const {
  int64_t count = 0;
  for (const auto& [part, traces] : parts_)
    for (const auto& c : traces) {
      if (c->executable) count += c->executable->plans_made();
      for (const auto& [key, job] : c->jobs)
        if (job.executable) count += job.executable->plans_made();
    }
  return count;
}

size_t Session::planned_bytes() const {
  size_t bytes = 0;
  for (const auto& [part, traces] : parts_)
    for (const auto& c : traces) {
      if (c->executable) bytes = std::max(bytes, c->executable->planned_bytes());
      for (const auto& [key, job] : c->jobs)
        if (job.executable) bytes = std::max(bytes, job.executable->planned_bytes());
    }
  return bytes;
}

}  // namespace paddle::train
