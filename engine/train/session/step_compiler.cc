#include "train/session/step_compiler.h"

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
#include "train/step/loss_form.h"

namespace paddle::train {

namespace {

/// The input of a function with the rate of an optimizer.
std::string rate_name(const std::string& optimizer) {
  return optimizer.empty() ? "learning_rate" : "learning_rate." + optimizer;
}

}  // namespace

StepCompiler::StepCompiler(SessionContext& context, ShardedStore& shards, TableClient& tables)
    : context_(context), shards_(shards), tables_(tables), stages_(context, shards) {
  module_.name = context.step->definition().exported().name;
  bind_sizes(context.options.shapes);
}

void StepCompiler::bind_sizes(const std::vector<Dims>& shapes) {
  shapes_ = shapes;
  sizes_.clear();
  for (size_t i = 0; i < std::min(shapes.size(), context_.fields.size()); ++i) {
    const Shape& declared = context_.fields[i].type.shape;
    for (size_t d = 0; d < std::min(declared.size(), shapes[i].size()); ++d)
      if (declared[d].is_symbol()) sizes_.try_emplace(declared[d].text(), shapes[i][d]);
  }
}

void StepCompiler::bind_sizes(const std::vector<Array>& batch) {
  const auto has_shape = [](const Array& array, const Dims& shape) { return array.shape == shape; };
  if (std::equal(batch.begin(), batch.end(), shapes_.begin(), shapes_.end(), has_shape)) return;
  std::vector<Dims> shapes;
  for (const Array& array : batch) shapes.push_back(array.shape);
  bind_sizes(shapes);
}

StepOutputs StepCompiler::run_step(StepFunction kind, program::ParameterBinding& ports,
                                   const StepInputs& inputs) const {
  switch (kind) {
    case StepFunction::kTrain:
      return context_.step->train(ports, inputs);
    case StepFunction::kAccumulate:
      return context_.step->accumulate(ports, inputs, phase_);
    case StepFunction::kApply:
      return context_.step->apply(ports, inputs, phases_.at(phase_).update.optimizer,
                                  phases_.at(phase_).parameters);
    case StepFunction::kForward:
    case StepFunction::kStatistics:
      return context_.step->forward(ports, inputs, true);
    case StepFunction::kPredict:
      return context_.step->predict(ports, inputs);
    case StepFunction::kGradients:
      return context_.step->output_gradients(ports, inputs);
    case StepFunction::kEvaluate:
    case StepFunction::kDivisor:
    case StepFunction::kAlignment:
      return context_.step->evaluate(ports, inputs);
  }
  return {};
}

std::vector<PortRole> StepCompiler::input_roles(StepFunction kind) const {
  std::vector<PortRole> roles;
  if (kind != StepFunction::kApply) roles.assign(context_.fields.size(), PortRole::kField);
  roles.insert(roles.end(), context_.step->definition().optimizers.size(), PortRole::kLearningRate);
  roles.push_back(PortRole::kStep);
  roles.push_back(PortRole::kWeight);
  return roles;
}

StepInputs StepCompiler::trace_inputs(ir::Tracer& tracer, StepFunction kind, bool constant_dims,
                                      Tensor& random) const {
  StepInputs inputs;
  if (kind != StepFunction::kApply)
    for (size_t i = 0; i < context_.fields.size(); ++i) {
      TensorType type = context_.fields[i].type;
      if (constant_dims) type.shape = to_shape(shapes_.at(i));
      inputs.fields[context_.fields[i].name] =
          tracer.input({ir::PortKind::kValue, context_.fields[i].name}, type);
    }
  for (const NamedOptimizer& each : context_.step->definition().optimizers)
    inputs.learning_rates.push_back(
        tracer.input({ir::PortKind::kValue, rate_name(each.name)}, {context_.rate_type(), {}}));
  inputs.step = tracer.input({ir::PortKind::kValue, "step"}, {DType::kI64, {}});
  inputs.weight = tracer.input({ir::PortKind::kValue, "weight"}, {DType::kF64, {}});
  if (kind == StepFunction::kApply && context_.step->reads_norms())
    for (const std::string& table : phases_.at(phase_).tables)
      inputs.table_squares.emplace_back(
          table, tracer.input({ir::PortKind::kValue, TableClient::squares_port(table)},
                              {DType::kF64, {}}));
  inputs.step_number = step_number_;
  random = tracer.input({ir::PortKind::kRandom, "seed_and_step"}, {DType::kU64, {Dim(2)}});
  return inputs;
}

void StepCompiler::trace(ir::Function& f, StepFunction kind, const UseTrace& use,
                         Interpreter* watch, bool constant_dims) {
  f.target = context_.options.compile.target;
  ir::Tracer tracer(f);
  const InterpreterScope scope(tracer);
  Tensor random;
  const StepInputs inputs = trace_inputs(tracer, kind, constant_dims, random);
  const RandomScope random_scope(random);
  std::optional<InterpreterScope> watching;
  if (watch) watching.emplace(*watch);
  program::TraceBinding ports(context_.store, context_.options.use_float64, tracer);
  ports.known_dims = sizes_;
  ports.frozen = context_.frozen();
  tables_.connect(ports, inputs, kind);
  use(tracer, ports, run_step(kind, ports, inputs));
}

namespace {

/// The text of a function with its run-time symbols ($7) numbered by their first appearance: their
/// own numbers count all that the process has made.
std::string with_numbered_symbols(const std::string& text) {
  std::map<std::string, size_t> numbers;
  std::string out;
  for (size_t at = 0; at < text.size();) {
    size_t end = at + 1;
    if (text[at] == '$')
      while (end < text.size() && text[end] >= '0' && text[end] <= '9') ++end;
    const std::string part = text.substr(at, end - at);
    out += end == at + 1 ? part : str("$", numbers.try_emplace(part, numbers.size()).first->second);
    at = end;
  }
  return out;
}

}  // namespace

uint32_t StepCompiler::forward_digest() {
  ir::Function f("forward", context_.options.compile.target);
  ir::Tracer tracer(f);
  const InterpreterScope scope(tracer);
  Tensor random;
  const StepInputs inputs = trace_inputs(tracer, StepFunction::kForward, false, random);
  const RandomScope random_scope(random);
  program::TraceBinding ports(context_.store, context_.options.use_float64, tracer);
  ports.known_dims = sizes_;
  tables_.connect(ports, inputs, StepFunction::kForward);
  tracer.output({ir::PortKind::kValue, "loss"}, context_.step->forward(ports, inputs, true).loss);
  for (ir::Value& value : f.values()) value.name.clear();  // those of variables may change
  f.target = {};  // the digest is of the model, whatever runs it
  std::istringstream lines(with_numbered_symbols(ir::print(f)));
  uint32_t digest = 0;
  for (std::string line; std::getline(lines, line);) {
    line.resize(std::min(line.size(), line.rfind("  // ")));  // the place
    digest = crc32(std::as_bytes(std::span(line.data(), line.size())), digest);
  }
  return digest;
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

void StepCompiler::record_phase(const StepOutputs& out) {
  phases_.resize(out.updates.size());
  UpdatePhase& phase = phases_.at(phase_);
  phase.update = out.updates.at(phase_);
  if (out.accumulated.empty() && out.tables.empty()) return;  // it is not due
  phase.parameters = out.accumulated;
  std::sort(phase.parameters.begin(), phase.parameters.end());
  phase.tables.clear();
  for (const TableGradient& each : out.tables)
    if (phase.tables.empty() || phase.tables.back() != each.table)
      phase.tables.push_back(each.table);
}

std::unique_ptr<CompiledFunction> StepCompiler::traced(StepFunction kind, bool constant_dims) {
  static const std::map<StepFunction, std::string> kNames = {
      {StepFunction::kTrain, "train"},         {StepFunction::kAccumulate, "accumulate"},
      {StepFunction::kApply, "apply"},         {StepFunction::kEvaluate, "evaluate"},
      {StepFunction::kDivisor, "divisor"},     {StepFunction::kAlignment, "alignment"},
      {StepFunction::kForward, "forward"},     {StepFunction::kPredict, "predict"},
      {StepFunction::kGradients, "gradients"}, {StepFunction::kStatistics, "statistics"}};
  auto c = std::make_unique<CompiledFunction>();
  c->function = std::make_shared<ir::Function>(kNames.at(kind));
  c->phase = phase_;
  c->kind = kind;
  ir::Function& f = *c->function;
  std::set<const ir::Value*> reread;
  BatchStatistics statistics;
  trace(
      f, kind,
      [&](ir::Tracer& tracer, program::TraceBinding& ports, const StepOutputs& out) {
        TableClient::note_lookups(*c, ports);
        c->fixed = ports.fixed_dims;
        c->conditions = out.conditions;
        if (kind == StepFunction::kDivisor) {
          const LossForm form = train::loss_form(f, *tracer.value_of(out.loss));
          ensure(form.divisor != nullptr, "the loss has no divisor");
          f.add_output({ir::PortKind::kValue, "divisor"}, const_cast<ir::Value*>(form.divisor));
          return;
        }
        if (kind == StepFunction::kAlignment) {
          add_alignment_outputs(f);
          return;
        }
        if (kind == StepFunction::kStatistics) {
          c->statistics = add_statistics_outputs(f, tracer, statistics);
          return;
        }
        if (kind == StepFunction::kAccumulate) record_phase(out);
        for (const Tensor& value : out.reread) reread.insert(tracer.value_of(value));
        if (out.loss.defined()) tracer.output({ir::PortKind::kValue, "loss"}, out.loss);
        if (out.prediction.defined())
          tracer.output({ir::PortKind::kValue, "scores"}, out.prediction);
        if (kind == StepFunction::kTrain)
          for (size_t i = 0; i < out.losses.size(); ++i)
            tracer.output(
                {ir::PortKind::kValue, "loss." + context_.step->definition().optimizers[i].name},
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
          tracer.output({ir::PortKind::kValue, TableClient::gradient_port(each.table, each.field)},
                        each.rows);
        for (const auto& [table, scale] : out.table_scales)
          tracer.output({ir::PortKind::kValue, TableClient::scale_port(table)}, scale);
        ports.finish();
      },
      kind == StepFunction::kStatistics ? &statistics : nullptr, constant_dims);
  c->roles = input_roles(kind);
  TableClient::find_ports(
      *c, kind == StepFunction::kApply ? phases_.at(phase_).tables : std::vector<std::string>());
  if (!reread.empty()) check_reread(f, reread, context_.step->definition().loss.where.location());
  // Operations that are only there for other updates of the step.
  if (kind == StepFunction::kAccumulate && phases_.size() > 1) passes::remove_dead_code(f);
  if (is_partitioned(kind)) partition(*c);
  return c;
}

std::unique_ptr<CompiledFunction> StepCompiler::compile(StepFunction kind) {
  auto c = traced(kind, is_partitioned(kind));
  ++traces_;
  if (context_.is_pipelined() && is_partitioned(kind)) stages_.cut(*c);
  connect(*c);
  if (c->cut) return c;
  compiler::CompileOptions compile = context_.options.compile;
  if (kind == StepFunction::kTrain || kind == StepFunction::kAccumulate)
    compile.recompute = choose_recompute(*c->function);
  c->executable = runtime::compile(c->function, compile,
                                   {.max_plans = context_.options.max_plans,
                                    .plan = {.check_memory = context_.options.check_memory,
                                             .profile = context_.options.profile,
                                             .collectives = context_.options.collectives()},
                                    .adapt_threads = context_.options.adapt_threads},
                                   context_.options.observe);
  return c;
}

void StepCompiler::connect(CompiledFunction& c) {
  const std::vector<ir::Port>& ports = c.function->inputs;
  c.placement.resize(ports.size());
  c.inputs.resize(ports.size());
  c.roles.resize(ports.size());
  c.field.assign(ports.size(), -1);
  c.stored.assign(ports.size(), nullptr);
  // Of a function in jobs only what this rank's jobs read.
  std::vector<bool> reads(ports.size(), !c.cut);
  for (const auto& [key, job] : c.jobs)
    for (const auto& source : job.part.inputs)
      if (source.port >= 0) reads[static_cast<size_t>(source.port)] = true;
  for (size_t i = 0; i < ports.size(); ++i) {
    const ir::Port& port = ports[i];
    const auto input = static_cast<int>(i);
    switch (port.kind) {
      case ir::PortKind::kParameter:
      case ir::PortKind::kState:
        if (reads[i]) c.stored[i] = shards_.find(port, c.placement[i]);
        continue;
      case ir::PortKind::kRandom:
        c.random = input;
        c.inputs[i] = Array::zeros(DType::kU64, {2});
        continue;
      case ir::PortKind::kValue:
        break;
    }
    switch (c.roles[i]) {
      case PortRole::kField:
        c.field[i] = input;  // fields come first
        break;
      case PortRole::kLearningRate:
        c.learning_rates.push_back(input);
        c.inputs[i] = Array::zeros(context_.rate_type(), {});
        break;
      case PortRole::kStep:
        c.step = input;
        c.inputs[i] = Array::zeros(DType::kI64, {});
        break;
      case PortRole::kWeight:
        c.weight = input;
        c.inputs[i] = Array::zeros(DType::kF64, {});
        break;
      case PortRole::kTable:
        break;  // filled by TableClient
      case PortRole::kNone:
        fail(ErrorCode::kInternal, "input '", port.name, "' of '", c.function->name,
             "' has no role");
    }
  }
}

CompiledFunction& StepCompiler::compiled(StepFunction kind) {
  auto& traces = functions_[kind];
  const bool has_phases = kind == StepFunction::kAccumulate || kind == StepFunction::kApply;
  const auto fits = [&](const std::unique_ptr<CompiledFunction>& c) {
    return (!has_phases || c->phase == phase_) &&
           (!is_partitioned(kind) || kind == StepFunction::kApply || c->shapes == shapes_) &&
           std::all_of(c->fixed.begin(), c->fixed.end(),
                       [&](const auto& dim) {
                         const auto size = sizes_.find(dim.first);
                         return size != sizes_.end() && size->second == dim.second;
                       }) &&
           std::all_of(c->conditions.begin(), c->conditions.end(),
                       [&](const UpdateCondition& each) { return each.holds(step_number_); });
  };
  if (auto* const found = traces.find(fits)) return **found;
  const bool first = traces.empty();
  CompiledFunction& made = *traces.add(compile(kind), context_.options.max_plans);
  update_module(first ? &made : nullptr);
  return made;
}

void StepCompiler::update_module(const CompiledFunction* added) {
  if (added) module_.functions.push_back(added->logical ? added->logical : added->function);
  module_.parameters.clear();
  module_.states.clear();
  for (const auto& [name, p] : context_.store.parameters)
    module_.parameters.push_back({.name = name,
                                  .type = {p.value.dtype, to_shape(p.value.shape)},
                                  .initializer = p.initializer,
                                  .trainable = !context_.step->definition().is_frozen(name),
                                  .placement = shards_.placement_of(name)});
  for (const auto& [name, value] : context_.store.states) {
    module_.states.push_back(program::state_slot(context_.store, name));
    module_.states.back().placement = shards_.placement_of(name);
  }
}

}  // namespace paddle::train
