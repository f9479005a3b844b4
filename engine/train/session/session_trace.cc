// The functions that a session compiles: traced for a part of the step, with what goes into and
// comes out of them.

#include <algorithm>
#include <map>
#include <optional>
#include <set>

#include "compiler/passes/passes.h"
#include "ops/core/call.h"
#include "program/prediction.h"
#include "runtime/compile.h"
#include "train/session/alignment.h"
#include "train/session/batch_statistics.h"
#include "train/session/compiled_part.h"
#include "train/session/session.h"

namespace paddle::train {

namespace {

/// The input of a function with the rate of an optimizer.
std::string rate_name(const std::string& optimizer) {
  return optimizer.empty() ? "learning_rate" : "learning_rate." + optimizer;
}

}  // namespace

StepInputs Session::trace_inputs(ir::Tracer& tracer, Part part, bool constant_dims,
                                 Tensor& random) const {
  StepInputs inputs;
  if (part != Part::kApply)
    for (size_t i = 0; i < fields_.size(); ++i) {
      TensorType type = fields_[i].type;
      if (constant_dims) type.shape = to_shape(shapes_.at(i));
      inputs.fields[fields_[i].name] = tracer.input({ir::PortKind::kValue, fields_[i].name}, type);
    }
  for (const NamedOptimizer& each : step_->definition().optimizers)
    inputs.learning_rates.push_back(
        tracer.input({ir::PortKind::kValue, rate_name(each.name)}, {rate_type(), {}}));
  inputs.step = tracer.input({ir::PortKind::kValue, "step"}, {DType::kI64, {}});
  inputs.weight = tracer.input({ir::PortKind::kValue, "weight"}, {DType::kF64, {}});
  if (part == Part::kApply && step_->reads_norms())
    for (const std::string& table : phases_.at(phase_).tables)
      inputs.table_squares.emplace_back(
          table, tracer.input({ir::PortKind::kValue, "squares:" + table}, {DType::kF64, {}}));
  inputs.step_number = step_number_;
  random = tracer.input({ir::PortKind::kRandom, "seed_and_step"}, {DType::kU64, {Dim(2)}});
  return inputs;
}

void Session::trace_part(ir::Function& f, Part part, const UseTrace& use, Interpreter* watch,
                         bool constant_dims) {
  f.target = options_.compile.target;
  ir::Tracer tracer(f);
  const InterpreterScope scope(tracer);
  Tensor random;
  const StepInputs inputs = trace_inputs(tracer, part, constant_dims, random);
  const RandomScope random_scope(random);
  std::optional<InterpreterScope> watching;
  if (watch) watching.emplace(*watch);
  program::TraceBinding ports(store_, options_.use_float64, tracer);
  ports.known_dims = sizes_;
  ports.frozen = frozen();
  connect_tables(ports, inputs, part);
  use(tracer, ports, run_part(part, ports, inputs));
}

namespace {

/// An update sees no values that were computed from parameters before an earlier update has changed
/// them: those are gone. `reread`: as what it reads the changed ones.
void check_reread(const ir::Function& f, const std::set<const ir::Value*>& reread,
                  const SourceLocation& where) {
  std::map<const ir::Value*, std::string> changed;
  for (const ir::Value* value : reread) {
    const ir::Value* v = value;
    while (v->producer) v = v->producer->operands[0];
    for (size_t i = 0; i < f.inputs.size(); ++i)
      if (f.body.arguments[i] == v) changed[v] = f.inputs[i].name;
  }
  std::set<const ir::Value*> seen;
  std::vector<const ir::Value*> open(f.body.results.begin(), f.body.results.end());
  while (!open.empty()) {
    const ir::Value* const v = open.back();
    open.pop_back();
    if (reread.contains(v) || !seen.insert(v).second) continue;
    if (const auto it = changed.find(v); it != changed.end())
      throw Error(ErrorCode::kConfig,
                  "train.accumulate: an update reads what was computed from '" + it->second +
                      "' before an earlier update of the step has changed it; compute it again "
                      "after that update",
                  where);
    if (v->producer)
      ir::for_each_read(*v->producer, [&](const ir::Value* read) { open.push_back(read); });
  }
}

}  // namespace

void Session::record_phase(const StepOutputs& out) {
  phases_.resize(out.updates.size());
  Phase& phase = phases_.at(phase_);
  phase.update = out.updates.at(phase_);
  if (out.accumulated.empty() && out.tables.empty()) return;  // it is not due
  phase.parameters = out.accumulated;
  std::sort(phase.parameters.begin(), phase.parameters.end());
  phase.tables.clear();
  for (const TableGradient& each : out.tables)
    if (phase.tables.empty() || phase.tables.back() != each.table)
      phase.tables.push_back(each.table);
}

std::unique_ptr<Session::Compiled> Session::traced(Part part, bool constant_dims) {
  static const std::map<Part, std::string> kNames = {
      {Part::kTrain, "train"},         {Part::kAccumulate, "accumulate"},
      {Part::kApply, "apply"},         {Part::kEvaluate, "evaluate"},
      {Part::kDivisor, "divisor"},     {Part::kAlignment, "alignment"},
      {Part::kForward, "forward"},     {Part::kPredict, "predict"},
      {Part::kGradients, "gradients"}, {Part::kStatistics, "statistics"}};
  auto c = std::make_unique<Compiled>();
  c->function = std::make_shared<ir::Function>(kNames.at(part));
  c->phase = phase_;
  c->part = part;
  ir::Function& f = *c->function;
  std::set<const ir::Value*> reread;
  BatchStatistics statistics;
  trace_part(
      f, part,
      [&](ir::Tracer& tracer, program::TraceBinding& ports, const StepOutputs& out) {
        note_lookups(*c, ports);
        c->fixed = ports.fixed_dims;
        c->conditions = out.conditions;
        if (part == Part::kDivisor) {
          const LossForm form = train::loss_form(f, *tracer.value_of(out.loss));
          ensure(form.divisor != nullptr, "the loss has no divisor");
          f.add_output({ir::PortKind::kValue, "divisor"}, const_cast<ir::Value*>(form.divisor));
          return;
        }
        if (part == Part::kAlignment) {
          add_alignment_outputs(f);
          return;
        }
        if (part == Part::kStatistics) {
          c->statistics = add_statistics_outputs(f, tracer, statistics);
          return;
        }
        if (part == Part::kAccumulate) record_phase(out);
        for (const Tensor& value : out.reread) reread.insert(tracer.value_of(value));
        if (out.loss.defined()) tracer.output({ir::PortKind::kValue, "loss"}, out.loss);
        if (out.prediction.defined())
          tracer.output({ir::PortKind::kValue, "scores"}, out.prediction);
        if (part == Part::kTrain)
          for (size_t i = 0; i < out.losses.size(); ++i)
            tracer.output({ir::PortKind::kValue, "loss." + step_->definition().optimizers[i].name},
                          out.losses[i]);
        for (size_t m = 0; m < out.metrics.size(); ++m) {
          const Tensors& operands = out.metrics[m].operands;
          c->metric_sizes.push_back(operands.size());
          for (size_t i = 0; i < operands.size(); ++i)
            tracer.output({ir::PortKind::kValue, str("metric.", m, ".", i)}, operands[i]);
        }
        for (const auto& [name, gradient] : out.gradients)
          tracer.output({ir::PortKind::kValue, name}, gradient);
        for (const TableGradient& each : out.tables)
          tracer.output({ir::PortKind::kValue, gradient_port(each.table, each.field)}, each.rows);
        for (const auto& [table, scale] : out.table_scales)
          tracer.output({ir::PortKind::kValue, "scale:" + table}, scale);
        ports.finish();
      },
      part == Part::kStatistics ? &statistics : nullptr, constant_dims);
  find_table_ports(*c);
  if (part == Part::kApply) find_norm_ports(*c);
  if (!reread.empty()) check_reread(f, reread, step_->definition().loss.where.location());
  // Operations that are only there for other updates of the step.
  if (part == Part::kAccumulate && phases_.size() > 1) passes::remove_dead_code(f);
  if (is_partitioned(part)) partition(*c);
  return c;
}

std::unique_ptr<Session::Compiled> Session::trace(Part part) {
  auto c = traced(part, is_partitioned(part));
  ++traces_;
  if (is_pipelined() && is_partitioned(part)) cut(*c, part);
  connect(*c, part);
  if (c->cut) return c;
  compiler::CompileOptions compile = options_.compile;
  if (part == Part::kTrain || part == Part::kAccumulate)
    compile.recompute = choose_recompute(*c->function);
  c->executable = runtime::compile(
      c->function, compile,
      {.max_plans = options_.max_plans,
       .plan = {.check_memory = options_.check_memory, .profile = options_.profile},
       .adapt_threads = options_.adapt_threads},
      options_.observe);
  return c;
}

void Session::connect(Compiled& c, Part part) {
  const std::vector<ir::Port>& ports = c.function->inputs;
  c.placement.resize(ports.size());
  c.inputs.resize(ports.size());
  // Of a function in jobs only what this rank's jobs read.
  std::vector<bool> reads(ports.size(), !c.cut);
  for (const auto& [key, job] : c.jobs)
    for (const auto& source : job.part.inputs)
      if (source.port >= 0) reads[static_cast<size_t>(source.port)] = true;
  for (size_t i = 0; i < ports.size(); ++i) {
    const ir::Port& port = ports[i];
    int field = -1;
    Array* stored = nullptr;
    if (port.kind == ir::PortKind::kParameter || port.kind == ir::PortKind::kState) {
      if (reads[i]) stored = this->stored(port, c.placement[i]);
    } else if (port.kind == ir::PortKind::kRandom) {
      c.random = static_cast<int>(i);
      c.inputs[i] = Array::zeros(DType::kU64, {2});
    } else if (part != Part::kApply && i < fields_.size()) {
      field = static_cast<int>(i);
    } else if (c.is_of_table(static_cast<int>(i))) {
      // filled by `fill_rows`
    } else if (port.name == "step") {
      c.step = static_cast<int>(i);
      c.inputs[i] = Array::zeros(DType::kI64, {});
    } else if (port.name == "weight") {
      c.weight = static_cast<int>(i);
      c.inputs[i] = Array::zeros(DType::kF64, {});
    } else {
      c.learning_rates.push_back(static_cast<int>(i));
      c.inputs[i] = Array::zeros(rate_type(), {});
    }
    c.field.push_back(field);
    c.stored.push_back(stored);
  }
}

Session::Compiled& Session::compiled(Part part) {
  auto& traces = parts_[part];
  for (auto it = traces.begin(); it != traces.end(); ++it) {
    const bool fits = (!is_partitioned(part) || part == Part::kApply || (*it)->shapes == shapes_) &&
                      std::all_of((*it)->fixed.begin(), (*it)->fixed.end(), [&](const auto& dim) {
                        const auto size = sizes_.find(dim.first);
                        return size != sizes_.end() && size->second == dim.second;
                      });
    const bool due =
        std::all_of((*it)->conditions.begin(), (*it)->conditions.end(),
                    [&](const UpdateCondition& each) { return each.holds(step_number_); });
    const bool has_phases = part == Part::kAccumulate || part == Part::kApply;
    if (!fits || !due || (has_phases && (*it)->phase != phase_)) continue;
    traces.splice(traces.begin(), traces, it);
    return *traces.front();
  }
  const bool first = traces.empty();
  traces.push_front(trace(part));
  if (traces.size() > options_.max_plans) traces.pop_back();
  // The module keeps one function for each part.
  const Compiled& made = *traces.front();
  if (first) module_.functions.push_back(made.logical ? made.logical : made.function);
  module_.parameters.clear();
  module_.states.clear();
  for (const auto& [name, p] : store_.parameters)
    module_.parameters.push_back({.name = name,
                                  .type = {p.value.dtype, to_shape(p.value.shape)},
                                  .initializer = p.initializer,
                                  .trainable = !step_->definition().is_frozen(name),
                                  .placement = placement_of(name)});
  for (const auto& [name, value] : store_.states) {
    module_.states.push_back(program::state_slot(store_, name));
    module_.states.back().placement = placement_of(name);
  }
  return *traces.front();
}

}  // namespace paddle::train
