// Sessions of a pipeline: each rank of the axis `pipeline` runs the jobs of its stages.

#include <algorithm>

#include "optim/optimizer.h"
#include "partition/communication.h"
#include "partition/stage_update.h"
#include "runtime/compile.h"
#include "runtime/execute.h"
#include "train/session/compiled_part.h"

namespace paddle::train {
namespace {

using partition::Job;
using partition::JobKind;

/// A tag that no value of a job has.
constexpr uint32_t kResultTag = 0xffffffff;

std::span<const std::byte> bytes_of(const Array& array) {
  return {static_cast<const std::byte*>(array.raw()),
          static_cast<size_t>(storage_bytes(array.dtype, array.size()))};
}

std::span<std::byte> writable_bytes_of(Array& array) {
  return {static_cast<std::byte*>(array.raw()),
          static_cast<size_t>(storage_bytes(array.dtype, array.size()))};
}

Array empty_like(const ir::Value& value) {
  return Array::empty(value.type.dtype, concrete(value.type.shape));
}

/// Adds what a job sends: in its collectives, and to other stages.
void add_traffic(const ir::Function& function, const partition::StageCut& cut,
                 const std::vector<int>& sends,
                 std::map<std::string, partition::Traffic>& traffic) {
  for (const auto& [name, more] : partition::communication(function)) {
    traffic[name].calls += more.calls;
    traffic[name].bytes += more.bytes;
  }
  for (const int t : sends) {
    const int value = cut.transfers()[static_cast<size_t>(t)].value;
    traffic["comm.send"].calls += 1;
    traffic["comm.send"].bytes +=
        static_cast<uint64_t>(partition::bytes_of(*cut.values()[static_cast<size_t>(value)]));
  }
}

/// The parameter, or the running statistic, that a state belongs to: "encoder.weight" of
/// "optimizer/encoder.weight/moment".
std::string parameter_of(const std::string& state, const program::ParameterStore& store) {
  const size_t slash = state.find('/');
  if (slash == std::string::npos) return "";
  std::string rest = state.substr(slash + 1);
  while (!store.parameters.contains(rest) && !store.states.contains(rest)) {
    const size_t end = rest.rfind('/');
    if (end == std::string::npos) return "";
    rest.resize(end);
  }
  return rest;
}

}  // namespace

int Session::pipeline_owner(const std::string& name) const {
  if (!pipeline_) return 0;
  const auto& owners = pipeline_->owners;
  auto it = owners.find(name);
  if (it == owners.end()) it = owners.find(parameter_of(name, store_));
  return it == owners.end() ? 0 : it->second % options_.mesh.axis_size_of("pipeline");
}

bool Session::is_owned(const std::string& name) const {
  return pipeline_ && (pipeline_->owners.contains(name) ||
                       pipeline_->owners.contains(parameter_of(name, store_)));
}

bool Session::is_held(const std::string& name) const {
  if (!is_owned(name)) return true;
  const int position = pipeline_position();
  return pipeline_owner(name) == position || reading_positions(name).contains(position);
}

std::set<int> Session::reading_positions(const std::string& name) const {
  auto it = pipeline_->readers.find(name);
  // An evaluation puts the average of a weight in the place of the weight, wherever that is read.
  const bool replaces =
      name.starts_with("master/") || name.ends_with(str("/", optim::kEvaluationSlot));
  if (it == pipeline_->readers.end() && replaces)
    it = pipeline_->readers.find(parameter_of(name, store_));
  std::set<int> out;
  if (it != pipeline_->readers.end())
    for (const int stage : it->second) out.insert(stage % options_.mesh.axis_size_of("pipeline"));
  return out;
}

int Session::pipeline_position() const {
  return options_.mesh.coordinate(options_.communicator->rank(), options_.mesh.axis("pipeline"));
}

int Session::pipeline_rank(int stage) const {
  const int axis = options_.mesh.axis("pipeline");
  const auto group = options_.mesh.group(options_.communicator->rank(), axis);
  return static_cast<int>(group[static_cast<size_t>(stage % options_.mesh.axis_size(axis))]);
}

void Session::cut(Compiled& c, Part part) {
  if (!pipeline_) pipeline_ = std::make_unique<Pipeline>();
  Pipeline& p = *pipeline_;
  const int ranks = options_.mesh.axis_size_of("pipeline"), stages = ranks * options_.chunks;
  if (part == Part::kApply) {
    partition::StageUpdateOptions update;
    update.position = pipeline_position();
    update.group =
        options_.mesh.group(options_.communicator->rank(), options_.mesh.axis("pipeline"));
    std::map<std::string, partition::Placement> placement;
    for (size_t i = 0; i < c.function->inputs.size(); ++i) {
      const std::string& name = c.function->inputs[i].name;
      placement[name] = c.placement[i];
      if (!is_owned(name)) continue;
      update.owners[name] = pipeline_owner(name);
      update.copies[name] = reading_positions(name);
      update.copies[name].erase(pipeline_owner(name));
    }
    c.function = partition::stage_update(*c.function, update);
    c.placement.clear();
    for (const ir::Port& port : c.function->inputs) c.placement.push_back(placement[port.name]);
    return;
  }
  const bool training = part == Part::kAccumulate;
  if (p.leaves.empty()) {
    ensure(training, "an evaluation was cut before the training step");
    p.leaves = partition::assign_leaves(*c.logical, stages);
  }
  std::unordered_set<const ir::Value*> dropped;
  if (training && options_.recompute) dropped = dropped_in_pipeline(*c.function, p.leaves, stages);
  c.cut = std::make_unique<partition::StageCut>(
      *c.function, p.leaves, stages, training,
      training && options_.schedule == partition::Schedule::kZeroBubble, std::move(dropped));
  if (training && p.owners.empty()) {
    p.owners = p.leaves;
    for (size_t i = 0; i < c.function->outputs.size(); ++i) {
      const ir::Port& port = c.function->outputs[i];
      if (port.kind == ir::PortKind::kValue) continue;
      p.owners[port.name] = c.cut->stage_of_output(i);
      if (program::is_accumulated(port.name))
        p.owners[parameter_of(port.name, store_)] = c.cut->stage_of_output(i);
    }
    for (const auto& [name, readers] : c.cut->readers())
      p.readers[name].insert(readers.begin(), readers.end());
  }
  c.jobs = compile_jobs(*c.cut, true);
  if (!training) return;
  std::map<std::string, partition::Traffic> traffic;
  for (const auto& [key, job] : c.jobs)
    add_traffic(job.executable->function(), *c.cut, job.part.sends, traffic);
  communication_text_ = str("rank ", options_.communicator->rank(),
                            " sends in each micro-batch: ", partition::text(traffic));
}

Session::StageJobs Session::compile_jobs(const partition::StageCut& cut, bool observes) const {
  StageJobs jobs;
  const int ranks = options_.mesh.axis_size_of("pipeline");
  for (int stage = pipeline_position(); stage < ranks * options_.chunks; stage += ranks)
    for (const JobKind kind : {JobKind::kForward, JobKind::kBackward, JobKind::kWeights}) {
      StageJob job;
      job.part = cut.function(kind, stage);
      if (!job.part.function) continue;
      job.inputs.resize(job.part.inputs.size());
      runtime::ExecutableOptions options{options_.max_plans,
                                         {.check_memory = options_.check_memory,
                                          .profile = observes ? options_.profile : nullptr}};
      job.executable = runtime::compile(std::shared_ptr<ir::Function>(std::move(job.part.function)),
                                        options_.compile, options,
                                        observes ? options_.observe : compiler::Observer());
      jobs.emplace(std::pair(kind, stage), std::move(job));
    }
  return jobs;
}

void Session::run_job(Compiled& c, const Job& job, size_t micro_batch, JobValues& values) {
  const auto it = c.jobs.find({job.kind, job.stage});
  if (it == c.jobs.end()) return;
  StageJob& own = it->second;
  const auto& transfers = c.cut->transfers();
  const int here = options_.communicator->rank();
  const auto tag = [&](int transfer) {
    constexpr uint32_t kMaxTransfers = 1 << 16;
    return static_cast<uint32_t>(micro_batch) * kMaxTransfers + static_cast<uint32_t>(transfer);
  };
  for (const int t : own.part.takes) {
    const partition::Transfer& transfer = transfers[static_cast<size_t>(t)];
    const int from = pipeline_rank(transfer.from);
    if (from == here) continue;
    Array& to = values.between[transfer.value] =
        empty_like(*c.cut->values()[static_cast<size_t>(transfer.value)]);
    options_.communicator->recv(from, tag(t), writable_bytes_of(to));
  }
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
  for (const int t : own.part.sends) {
    const partition::Transfer& transfer = transfers[static_cast<size_t>(t)];
    const int to = pipeline_rank(transfer.to);
    if (to != here)
      options_.communicator->isend(to, tag(t), bytes_of(values.between.at(transfer.value)));
  }
}

/// The result of the rank of a stage, on all ranks of the axis.
void Session::share_result(int stage, Array& result) {
  const int here = options_.communicator->rank(), owner = pipeline_rank(stage);
  if (here != owner)
    return options_.communicator->recv(owner, kResultTag, writable_bytes_of(result));
  for (const int64_t rank : options_.mesh.group(here, options_.mesh.axis("pipeline")))
    if (rank != here)
      options_.communicator->isend(static_cast<int>(rank), kResultTag, bytes_of(result));
}

double Session::train_pipelined(std::span<const std::vector<Array>> micro_batches,
                                std::span<const double> weights, const StepScalars& numbers) {
  const auto count = static_cast<int>(micro_batches.size());
  const partition::PipelineShape shape{options_.schedule, options_.mesh.axis_size_of("pipeline"),
                                       options_.chunks, count};
  std::vector<Compiled*> parts;
  for (const std::vector<Array>& batch : micro_batches) {
    bind_sizes(batch);
    parts.push_back(&compiled(Part::kAccumulate));
  }
  Pipeline& p = *pipeline_;
  auto [lists, is_new] = p.lists.try_emplace(count);
  if (is_new) {
    lists->second = partition::make_job_lists(shape);
    const auto fault = partition::find_fault(lists->second, shape);
    ensure(!fault, "a pipeline of ", count, " micro-batches: ", fault.value_or(""));
  }
  const std::vector<Job>& jobs = lists->second[static_cast<size_t>(pipeline_position())];
  std::vector<JobValues> values(micro_batches.size());
  std::vector<int> jobs_left(micro_batches.size(), 0);
  for (const Job& job : jobs) ++jobs_left[static_cast<size_t>(job.micro_batch)];
  std::vector<double> losses(micro_batches.size(), 0);
  for (const Job& job : jobs) {
    const auto m = static_cast<size_t>(job.micro_batch);
    fill_inputs(*parts[m], micro_batches[m], numbers, weights[m], random_counter(numbers, m));
    run_job(*parts[m], job, m, values[m]);
    if (const auto loss = values[m].results.find(0); loss != values[m].results.end())
      losses[m] = loss->second.number();
    if (--jobs_left[m] == 0) values[m] = {};
  }
  double loss = 0;
  for (size_t m = 0; m < losses.size(); ++m) loss += losses[m] * weights[m];
  Array shared = Array::scalar(loss);
  if (count > 0) share_result(parts[0]->cut->stage_of_output(0), shared);
  run_compiled(compiled(Part::kApply), {}, numbers, 1, 0);
  return shared.number();
}

std::vector<Array> Session::run_forward_pipelined(Compiled& c) {
  JobValues values;
  const int ranks = options_.mesh.axis_size_of("pipeline");
  for (int stage = pipeline_position(); stage < ranks * options_.chunks; stage += ranks)
    run_job(c, {JobKind::kForward, stage, 0}, 0, values);
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

EvaluationResult Session::evaluate_pipelined(Compiled& c) {
  const std::vector<Array> out = run_forward_pipelined(c);
  EvaluationResult result;
  result.loss = out[0].number();
  size_t at = 1;
  for (const size_t size : c.metric_sizes) {
    const auto first = out.begin() + static_cast<ptrdiff_t>(at);
    result.metric_operands.emplace_back(first, first + static_cast<ptrdiff_t>(size));
    at += size;
  }
  result.metric_rows = c.metric_rows;
  return result;
}

Session::PipelinePlan Session::plan_pipeline(Part part, const std::vector<Dims>& shapes) {
  bind_sizes(shapes);
  Compiled& c = compiled(part);
  return plan_jobs(*c.cut, c.jobs, part == Part::kAccumulate);
}

Session::PipelinePlan Session::plan_jobs(const partition::StageCut& cut, StageJobs& jobs,
                                         bool trains) const {
  PipelinePlan out;
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
  if (trains) {
    const partition::PipelineShape shape{options_.schedule, options_.mesh.axis_size_of("pipeline"),
                                         options_.chunks, static_cast<int>(options_.accumulate)};
    const partition::Replay replay = partition::replay(partition::make_job_lists(shape), shape, {});
    kept = kept / static_cast<size_t>(options_.chunks) *
           static_cast<size_t>(replay.most_active[static_cast<size_t>(pipeline_position())]);
    out.flops *= static_cast<double>(options_.accumulate);
  }
  out.memory.arena += kept;
  return out;
}

std::vector<std::string> Session::pipeline_lines() const {
  if (!pipeline_) return {};
  const int ranks = options_.mesh.axis_size_of("pipeline"), stages = ranks * options_.chunks;
  std::vector<std::string> lines;
  for (int stage = 0; stage < stages; ++stage) {
    int64_t parameters = 0, elements = 0;
    for (const auto& [name, parameter] : store_.parameters) {
      const auto it = pipeline_->owners.find(name);
      if (it == pipeline_->owners.end() || it->second != stage) continue;
      ++parameters;
      elements += parameter.value.size();
    }
    lines.push_back(str("stage ", stage, " on rank ", stage % ranks, " of the axis: ", parameters,
                        " parameters, ", elements, " numbers"));
  }
  const partition::PipelineShape shape{options_.schedule, ranks, options_.chunks,
                                       static_cast<int>(options_.accumulate)};
  constexpr double kPercent = 100;
  const double bubble = partition::replay(partition::make_job_lists(shape), shape, {}).bubble();
  lines.push_back(str(options_.accumulate, " micro-batches: ranks wait for ",
                      static_cast<int>(kPercent * bubble + 0.5),
                      "% of the time in which they compute, if stages are equal"));
  return lines;
}

}  // namespace paddle::train
