#include "train/session/pipeline_stages.h"

#include <algorithm>
#include <cmath>

#include "partition/communication.h"
#include "partition/stage_update.h"
#include "partition/updated_states.h"
#include "runtime/compile.h"

namespace paddle::train {
namespace {

using partition::JobKind;

/// The tag of the first message of a function for micro-batches of this many rows. Those of a step
/// differ by one row at most, so functions for odd and for even numbers have tags of their own.
int64_t first_tag(const CompiledFunction& c, size_t transfers) {
  constexpr size_t kMaxTransfers = 1 << 15;
  ensure(transfers <= kMaxTransfers, "a pipeline with ", transfers, " values between its stages");
  const int64_t rows = c.shapes.empty() || c.shapes[0].empty() ? 0 : c.shapes[0][0];
  return rows % 2 * static_cast<int64_t>(kMaxTransfers);
}

}  // namespace

void PipelineStages::take_update(CompiledFunction& c) const {
  partition::StageUpdateOptions update;
  update.position = context_.pipeline_position();
  update.group =
      context_.options.mesh.group(context_.rank(), context_.options.mesh.axis("pipeline"));
  std::map<std::string, partition::Placement> placement;
  std::map<std::string, PortRole> roles;
  for (size_t i = 0; i < c.function->inputs.size(); ++i) {
    const std::string& name = c.function->inputs[i].name;
    placement[name] = c.placement[i];
    roles[name] = i < c.roles.size() ? c.roles[i] : PortRole::kNone;
    if (!shards_.is_owned(name)) continue;
    update.owners[name] = shards_.pipeline_owner(name);
    update.copies[name] = shards_.reading_positions(name);
    update.copies[name].erase(shards_.pipeline_owner(name));
  }
  c.function = partition::stage_update(*c.function, update);
  c.placement.clear();
  c.roles.clear();
  for (const ir::Port& port : c.function->inputs) {
    c.placement.push_back(placement[port.name]);
    c.roles.push_back(roles[port.name]);
  }
}

void PipelineStages::cut(CompiledFunction& c) {
  if (c.kind == StepFunction::kApply) return take_update(c);
  const SessionOptions& options = context_.options;
  const bool training = c.kind == StepFunction::kAccumulate;
  if (leaves_.empty()) {
    ensure(training, "an evaluation was cut before the training step");
    leaves_ = partition::assign_leaves(*c.logical, context_.stages());
  }
  if (training) partition::copy_updated_states(*c.function);
  std::unordered_set<const ir::Value*> dropped;
  if (training && options.recompute) dropped = dropped_values(*c.function);
  c.cut = std::make_unique<partition::StageCut>(
      *c.function, leaves_, context_.stages(), training,
      training && options.schedule == partition::Schedule::kZeroBubble, std::move(dropped));
  if (training && owners_.empty()) {
    owners_ = leaves_;
    for (size_t i = 0; i < c.function->outputs.size(); ++i) {
      const ir::Port& port = c.function->outputs[i];
      if (port.kind == ir::PortKind::kValue) continue;
      owners_[port.name] = c.cut->stage_of_output(i);
      if (program::is_accumulated(port.name))
        owners_[shards_.parameter_of(port.name)] = c.cut->stage_of_output(i);
    }
    StageOwners stages{owners_, {}};
    for (const auto& [name, readers] : c.cut->readers())
      stages.readers[name].insert(readers.begin(), readers.end());
    shards_.set_owners(std::move(stages));
  }
  c.jobs = compile_jobs(*c.cut, true, first_tag(c, c.cut->transfers().size()));
  if (!training) return;
  std::map<std::string, partition::Traffic> traffic;
  for (const auto& [key, job] : c.jobs)
    for (const auto& [name, more] : partition::communication(job.executable->function())) {
      if (name == "comm.recv") continue;  // counted where it is sent
      traffic[name].calls += more.calls;
      traffic[name].bytes += more.bytes;
    }
  communication_text_ =
      str("rank ", context_.rank(), " sends in each micro-batch: ", partition::text(traffic));
}

partition::PipelineShape PipelineStages::shape() const {
  return {context_.options.schedule, context_.pipeline_ranks(), context_.options.chunks,
          static_cast<int>(context_.options.accumulate)};
}

StageJobs PipelineStages::compile_jobs(const partition::StageCut& cut, bool observes,
                                       int64_t first_tag) const {
  StageJobs jobs;
  const int ranks = context_.pipeline_ranks();
  partition::StageMessages messages{.here = context_.rank(), .first_tag = first_tag};
  for (int stage = 0; stage < context_.stages(); ++stage)
    messages.ranks.push_back(context_.pipeline_rank(stage));
  messages.kept = cut.kept_values(messages);
  for (int stage = context_.pipeline_position(); stage < context_.stages(); stage += ranks)
    for (const JobKind kind : {JobKind::kForward, JobKind::kBackward, JobKind::kWeights}) {
      StageJob job;
      job.part = cut.function(kind, stage, &messages);
      if (!job.part.function) continue;
      job.inputs.resize(job.part.inputs.size());
      runtime::ExecutableOptions options{context_.options.max_plans,
                                         {.check_memory = context_.options.check_memory,
                                          .profile = observes ? context_.options.profile : nullptr,
                                          .collectives = context_.options.collectives()}};
      job.executable = runtime::compile(std::shared_ptr<ir::Function>(std::move(job.part.function)),
                                        context_.options.compile, options,
                                        observes ? context_.options.observe : compiler::Observer());
      jobs.emplace(std::pair(kind, stage), std::move(job));
    }
  return jobs;
}

PipelineStages::Cost PipelineStages::cost(const partition::StageCut& cut, StageJobs& jobs,
                                          bool training) const {
  Cost out;
  std::set<std::string> counted;
  size_t kept = 0;  // between the jobs of a micro-batch
  for (auto& [key, job] : jobs) {
    std::vector<Layout> layouts;
    const ir::Function& f = job.executable->function();
    for (size_t i = 0; i < f.inputs.size(); ++i) {
      const TensorType& type = f.body.arguments[i]->type;
      layouts.push_back(Layout::contiguous(type.dtype, concrete(type.shape)));
      if (job.part.inputs[i].port >= 0 && counted.insert(f.inputs[i].name).second)
        out.memory.inputs += static_cast<size_t>(storage_bytes(type.dtype, layouts.back().size()));
    }
    runtime::Plan& plan = job.executable->plan(layouts);
    const runtime::MemoryReport memory = plan.memory();
    out.memory.arena += memory.arena;
    out.memory.scratch = std::max(out.memory.scratch, memory.scratch);
    out.memory.constants += memory.constants;
    out.flops += plan.flops();
    for (const auto& source : job.part.outputs)
      if (source.value >= 0)
        kept += static_cast<size_t>(
            partition::bytes_of(*cut.values()[static_cast<size_t>(source.value)]));
  }
  if (training) {
    const partition::Replay replay =
        partition::replay(partition::make_job_lists(shape()), shape(), {});
    kept =
        kept / static_cast<size_t>(context_.options.chunks) *
        static_cast<size_t>(replay.most_active[static_cast<size_t>(context_.pipeline_position())]);
    out.flops *= static_cast<double>(context_.options.accumulate);
  }
  out.memory.arena += kept;
  return out;
}

std::vector<std::string> PipelineStages::summary() const {
  if (leaves_.empty()) return {};
  const int ranks = context_.pipeline_ranks(), stages = context_.stages();
  std::vector<std::string> lines;
  for (int stage = 0; stage < stages; ++stage) {
    int64_t parameters = 0, elements = 0;
    for (const auto& [name, parameter] : context_.store.parameters) {
      const auto it = owners_.find(name);
      if (it == owners_.end() || it->second != stage) continue;
      ++parameters;
      elements += parameter.value.size();
    }
    lines.push_back(str("stage ", stage, " on rank ", stage % ranks, " of the axis: ", parameters,
                        " parameters, ", elements, " numbers"));
  }
  constexpr double kPercent = 100;
  const double bubble = partition::replay(partition::make_job_lists(shape()), shape(), {}).bubble();
  lines.push_back(str(context_.options.accumulate, " micro-batches: ranks wait for ",
                      std::lround(kPercent * bubble),
                      "% of the time in which they compute, if stages are equal"));
  return lines;
}

}  // namespace paddle::train
