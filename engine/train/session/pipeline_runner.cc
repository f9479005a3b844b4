#include "train/session/pipeline_runner.h"

#include "runtime/execute.h"

namespace paddle::train {
namespace {

using partition::Job;
using partition::JobKind;

/// Of the messages that are not operations.
constexpr uint32_t kResultTag = 0x7fffffff;

Array empty_like(const ir::Value& value) {
  return Array::empty(value.type.dtype, concrete(value.type.shape));
}

}  // namespace

void PipelineRunner::run_job(CompiledFunction& c, const Job& job, JobValues& values) {
  const auto it = c.jobs.find({job.kind, job.stage});
  if (it == c.jobs.end()) return;
  StageJob& own = it->second;
  for (size_t i = 0; i < own.inputs.size(); ++i) {
    const auto& source = own.part.inputs[i];
    own.inputs[i] = source.port >= 0 ? c.inputs[static_cast<size_t>(source.port)]
                                     : values.between.at(source.value);
  }
  const std::vector<Array>& out = own.executable->run(own.inputs);
  for (size_t i = 0; i < own.part.outputs.size(); ++i) {
    const auto& source = own.part.outputs[i];
    if (source.value >= 0)
      values.between[source.value] = runtime::copied(out[i]);
    else if (c.function->outputs[static_cast<size_t>(source.port)].kind == ir::PortKind::kValue)
      values.results[source.port] = runtime::copied(out[i]);
  }
}

void PipelineRunner::share_result(int stage, Array& result) {
  const int here = context_.rank(), owner = context_.pipeline_rank(stage);
  if (here != owner)
    return context_.options.communicator->recv(owner, kResultTag, writable_bytes_of(result));
  for (const int64_t rank :
       context_.options.mesh.group(here, context_.options.mesh.axis("pipeline")))
    if (rank != here)
      context_.options.communicator->isend(static_cast<int>(rank), kResultTag, bytes_of(result));
}

double PipelineRunner::train(std::span<const std::vector<Array>> micro_batches,
                             std::span<const double> weights, const StepScalars& numbers) {
  const auto count = static_cast<int>(micro_batches.size());
  const partition::PipelineShape shape{context_.options.schedule, context_.pipeline_ranks(),
                                       context_.options.chunks, count};
  std::vector<CompiledFunction*> parts;
  for (const std::vector<Array>& batch : micro_batches) {
    compiler_.bind_sizes(batch);
    parts.push_back(&compiler_.compiled(StepFunction::kAccumulate));
  }
  auto [lists, is_new] = lists_.try_emplace(count);
  if (is_new) {
    lists->second = partition::make_job_lists(shape);
    const auto fault = partition::find_fault(lists->second, shape);
    ensure(!fault, "a pipeline of ", count, " micro-batches: ", fault.value_or(""));
  }
  const std::vector<Job>& jobs = lists->second[static_cast<size_t>(context_.pipeline_position())];
  std::vector<JobValues> values(micro_batches.size());
  std::vector<int> jobs_left(micro_batches.size(), 0);
  for (const Job& job : jobs) ++jobs_left[static_cast<size_t>(job.micro_batch)];
  std::vector<double> losses(micro_batches.size(), 0);
  for (const Job& job : jobs) {
    const auto m = static_cast<size_t>(job.micro_batch);
    executor_.fill_inputs(*parts[m], micro_batches[m], numbers, weights[m],
                          context_.random_counter(numbers, m));
    run_job(*parts[m], job, values[m]);
    if (const auto loss = values[m].results.find(0); loss != values[m].results.end())
      losses[m] = loss->second.number();
    if (--jobs_left[m] == 0) values[m] = {};
  }
  double loss = 0;
  for (size_t m = 0; m < losses.size(); ++m) loss += losses[m] * weights[m];
  Array shared = Array::scalar(loss);
  if (count > 0) share_result(parts[0]->cut->stage_of_output(0), shared);
  executor_.run(compiler_.compiled(StepFunction::kApply), {}, numbers, 1, 0);
  return shared.number();
}

std::vector<Array> PipelineRunner::run_forward(CompiledFunction& c) {
  JobValues values;
  const int ranks = context_.pipeline_ranks();
  for (int stage = context_.pipeline_position(); stage < context_.stages(); stage += ranks)
    run_job(c, {JobKind::kForward, stage, 0}, values);
  std::vector<Array> out;
  for (size_t i = 0; i < c.function->outputs.size(); ++i) {
    if (c.function->outputs[i].kind != ir::PortKind::kValue) continue;
    const auto mine = values.results.find(static_cast<int>(i));
    Array result =
        mine != values.results.end() ? mine->second : empty_like(*c.function->body.results[i]);
    share_result(c.cut->stage_of_output(i), result);
    out.push_back(std::move(result));
  }
  return out;
}

}  // namespace paddle::train
