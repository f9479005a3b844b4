#include "train/session.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>

#include "autograd/autograd.h"
#include "compiler/passes/passes.h"
#include "ops/core/call.h"
#include "program/prediction.h"
#include "runtime/compile.h"
#include "runtime/execute.h"
#include "train/alignment.h"
#include "train/batch_statistics.h"
#include "train/compiled_part.h"

namespace paddle::train {

Session::Session(std::shared_ptr<const Step> step, std::vector<FieldType> fields,
                 program::ParameterStore& store, SessionOptions options)
    : step_(std::move(step)),
      fields_(std::move(fields)),
      store_(store),
      options_(std::move(options)) {
  store_.seed = options_.seed;
  // A minimizer sums up gradients in every case, and has no other part.
  if (step_->minimizer()) options_.accumulate = 1;
  module_.name = step_->definition().exported().name;
  for (const NamedOptimizer& each : step_->definition().optimizers)
    if (!each.name.empty()) losses_.push_back(0);
  bind_sizes(options_.shapes);
  if (comm::Communicator* const peers = options_.peers.get())
    peers->overlap(options_.overlap.value_or(peers->can_overlap()));
  runtime::register_backends();
}

void Session::bind_sizes(const std::vector<Dims>& shapes) {
  shapes_ = shapes;
  sizes_.clear();
  for (size_t i = 0; i < std::min(shapes.size(), fields_.size()); ++i) {
    const Shape& declared = fields_[i].type.shape;
    for (size_t d = 0; d < std::min(declared.size(), shapes[i].size()); ++d)
      if (declared[d].is_symbol()) sizes_.try_emplace(declared[d].text(), shapes[i][d]);
  }
}

void Session::bind_sizes(const std::vector<Array>& batch) {
  const auto has_shape = [](const Array& array, const Dims& shape) { return array.shape == shape; };
  if (std::equal(batch.begin(), batch.end(), shapes_.begin(), shapes_.end(), has_shape)) return;
  std::vector<Dims> shapes;
  for (const Array& array : batch) shapes.push_back(array.shape);
  bind_sizes(shapes);
}

Session::~Session() {
  if (options_.peers) options_.peers->give_up();
}

std::function<bool(const std::string&)> Session::frozen() const {
  return [step = step_](const std::string& path) { return step->definition().is_frozen(path); };
}

StepOutputs Session::run_part(Part part, program::ParameterBinding& ports,
                              const StepInputs& inputs) const {
  switch (part) {
    case Part::kTrain:
      return step_->train(ports, inputs);
    case Part::kAccumulate:
      return step_->accumulate(ports, inputs, phase_);
    case Part::kApply:
      step_->apply(ports, inputs, phases_.at(phase_).update.optimizer,
                   phases_.at(phase_).parameters);
      return {};
    case Part::kForward:
    case Part::kStatistics:
      return step_->forward(ports, inputs, true);
    case Part::kPredict:
      return step_->predict(ports, inputs);
    case Part::kGradients:
      return step_->output_gradients(ports, inputs);
    case Part::kEvaluate:
    case Part::kDivisor:
    case Part::kAlignment:
      return step_->evaluate(ports, inputs);
  }
  return {};
}

namespace {

/// The input of a function with the rate of an optimizer.
std::string rate_name(const std::string& optimizer) {
  return optimizer.empty() ? "learning_rate" : "learning_rate." + optimizer;
}

}  // namespace

// --- compiled ---

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
  inputs.step_number = step_number_;
  random = tracer.input({ir::PortKind::kRandom, "seed_and_step"}, {DType::kU64, {Dim(2)}});
  return inputs;
}

void Session::trace_part(ir::Function& f, Part part, const UseTrace& use, Interpreter* watch,
                         bool constant_dims) {
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
  use(tracer, ports, run_part(part, ports, inputs));
}

double Session::divisor(const std::vector<Array>& batch) {
  bind_sizes(batch);
  return run_compiled(compiled(Part::kDivisor), batch, {}, 1, 0)[0].number();
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
                      "behind that update",
                  where);
    if (v->producer)
      ir::for_each_read(*v->producer, [&](const ir::Value* read) { open.push_back(read); });
  }
}

}  // namespace

void Session::note_phase(const StepOutputs& out) {
  phases_.resize(out.updates.size());
  Phase& phase = phases_.at(phase_);
  phase.update = out.updates.at(phase_);
  if (out.accumulated.empty()) return;  // it is not due
  phase.parameters = out.accumulated;
  std::sort(phase.parameters.begin(), phase.parameters.end());
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
  ir::Function& f = *c->function;
  std::set<const ir::Value*> reread;
  BatchStatistics statistics;
  trace_part(
      f, part,
      [&](ir::Tracer& tracer, program::TraceBinding& ports, const StepOutputs& out) {
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
        if (part == Part::kAccumulate) note_phase(out);
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
        ports.finish();
      },
      part == Part::kStatistics ? &statistics : nullptr, constant_dims);
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
      {options_.max_plans, {.check_memory = options_.check_memory, .profile = options_.profile}},
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

void Session::put_input(Array& to, const Array& array, size_t field) const {
  const DType wanted = fields_[field].type.dtype;
  if (array.dtype == wanted && array.is_contiguous())
    to = array;  // a copy of the pointer; shape and strides keep their room
  else
    to = array.cast(wanted);
}

void Session::fill_inputs(Compiled& c, const std::vector<Array>& batch, const StepScalars& numbers,
                          double weight, uint64_t counter) {
  for (size_t i = 0; i < c.inputs.size(); ++i) {
    if (const auto field = static_cast<size_t>(c.field[i]); c.field[i] >= 0) {
      put_input(c.inputs[i], batch[field], field);
      if (!c.placement[i].empty())
        c.inputs[i] =
            partition::shard(c.inputs[i], c.placement[i], options_.mesh, options_.peers->rank());
    }
    if (Array* const stored = c.stored[i]) {
      if (stored->device() != options_.compile.device)
        *stored = stored->to(options_.compile.device);
      c.inputs[i] = *stored;
    }
  }
  for (size_t i = 0; i < std::min(c.learning_rates.size(), numbers.learning_rates.size()); ++i) {
    Array& rate = c.inputs[static_cast<size_t>(c.learning_rates[i])];
    if (options_.use_float64)
      *rate.data<double>() = numbers.learning_rates[i];
    else
      *rate.data<float>() = static_cast<float>(numbers.learning_rates[i]);
  }
  if (c.step >= 0) *c.inputs[static_cast<size_t>(c.step)].data<int64_t>() = numbers.step;
  if (c.weight >= 0) *c.inputs[static_cast<size_t>(c.weight)].data<double>() = weight;
  if (c.random >= 0) {
    uint64_t* random = c.inputs[static_cast<size_t>(c.random)].data<uint64_t>();
    random[0] = options_.seed;
    random[1] = counter;
  }
}

const std::vector<Array>& Session::run_compiled(Compiled& c, const std::vector<Array>& batch,
                                                const StepScalars& numbers, double weight,
                                                uint64_t counter) {
  fill_inputs(c, batch, numbers, weight, counter);
  return c.executable->run(c.inputs);
}

// --- eager ---

StepOutputs Session::run_eager(Part part, const std::vector<Array>& batch,
                               const StepScalars& numbers, double weight, uint64_t counter,
                               Interpreter* watch) {
  runtime::EagerExecutor executor(options_.compile.device);
  const InterpreterScope eager(executor);
  autograd::Tape tape;
  const InterpreterScope recording(tape);
  std::optional<InterpreterScope> watching;
  if (watch) watching.emplace(*watch);
  const RandomScope random(Tensor(Array::from<uint64_t>({options_.seed, counter}, {2})));
  program::EagerBinding ports(store_, options_.use_float64);
  ports.frozen = frozen();
  StepInputs inputs;
  if (part != Part::kApply)
    for (size_t i = 0; i < fields_.size(); ++i) {
      Array array;
      put_input(array, batch[i], i);
      inputs.fields[fields_[i].name] = Tensor(std::move(array));
    }
  for (size_t i = 0; i < step_->definition().optimizers.size(); ++i) {
    const double rate = i < numbers.learning_rates.size() ? numbers.learning_rates[i] : 0;
    inputs.learning_rates.push_back(Tensor(
        options_.use_float64 ? Array::scalar(rate) : Array::scalar(static_cast<float>(rate))));
  }
  inputs.step_number = step_number_;
  inputs.step = Tensor(Array::scalar(numbers.step));
  inputs.weight = Tensor(Array::scalar(weight));
  const StepOutputs out = run_part(part, ports, inputs);
  if (part != Part::kStatistics) ports.finish();
  if (part == Part::kAccumulate) note_phase(out);
  return out;
}

// --- steps ---

void Session::decorate() {
  for (const NamedOptimizer& each : step_->definition().optimizers)
    if (!each.name.empty())
      store_.states.emplace(Step::counter(each.name), Array::scalar(int64_t{0}));
  const auto& mixed = step_->definition().mixed;
  if (!mixed) return;
  if (mixed->scaling) {
    store_.states.emplace("amp/scale", Array::scalar(static_cast<float>(mixed->scaling->initial)));
    for (const char* name : {"amp/good", "amp/bad", "amp/updates", "amp/skipped"})
      store_.states.emplace(name, Array::scalar(int64_t{0}));
  }
  if (!mixed->cast.all_low) return;
  // A trace makes the parameters and tells which of them are wanted in float32.
  ir::Function f("parameters");
  trace_part(f, Part::kEvaluate,
             [&](ir::Tracer&, program::TraceBinding& ports, const StepOutputs&) {
               for (const auto& [name, parameter] : store_.parameters)
                 if (parameter.value.dtype == DType::kF32 && !ports.kept.contains(name) &&
                     !store_.master(name))
                   store_.keep_in_16_bits(name, mixed->cast.low);
             });
}

void Session::prepare() {
  decorate();
  if (options_.eager) {
    // A trace makes the parameters; it is not run.
    if (store_.parameters.empty()) trace(Part::kEvaluate);
    make_minimizer_states();
    return;
  }
  if (options_.accumulate <= 1 && !is_pipelined()) {
    compiled(Part::kTrain);
    make_minimizer_states();
    return;
  }
  do {
    compiled(Part::kAccumulate);
    compiled(Part::kApply);
  } while (++phase_ < phases_.size());
  phase_ = 0;
}

void Session::start_copies() {
  for (const auto& [name, parameter] : store_.parameters) {
    const Array* exact = store_.master(name);
    const Array& value = exact ? *exact : parameter.value;
    if (!store_.initializes(value.size())) continue;
    for (const std::string& state : step_->copies(name, value.shape))
      if (const auto it = store_.states.find(state); it != store_.states.end())
        it->second = runtime::copied(value);
  }
}

uint64_t Session::random_counter(const StepScalars& numbers, size_t micro_batch) const {
  return static_cast<uint64_t>(numbers.step) *
             static_cast<uint64_t>(std::max<int64_t>(1, options_.accumulate)) +
         micro_batch;
}

double Session::train(std::span<const std::vector<Array>> micro_batches,
                      std::span<const double> weights, const StepScalars& numbers) {
  step_number_ = numbers.step;
  if (options_.peers) options_.peers->at_step(numbers.step);
  if (step_->minimizer()) return minimize(micro_batches, weights, numbers);
  if (is_pipelined()) return train_pipelined(micro_batches, weights, numbers);
  if (options_.accumulate > 1) return train_by_parts(micro_batches, weights, numbers);
  double loss = 0;
  for (size_t i = 0; i < micro_batches.size(); ++i) {
    bind_sizes(micro_batches[i]);
    // Every micro-batch draws its own random numbers.
    loss += weights[i] * run_micro_batch(Part::kTrain, micro_batches[i], numbers, weights[i],
                                         random_counter(numbers, i));
  }
  return loss;
}

StartedStep Session::start(std::span<const std::vector<Array>> micro_batches,
                           std::span<const double> weights, const StepScalars& numbers) {
  StartedStep out;
  const bool queues = !options_.compile.device.is_cpu() && !options_.eager && !step_->minimizer() &&
                      !is_pipelined() && options_.accumulate <= 1 && micro_batches.size() == 1 &&
                      weights[0] == 1;
  if (!queues) {
    out.loss = train(micro_batches, weights, numbers);
    out.losses = losses_;
    return out;
  }
  step_number_ = numbers.step;
  if (options_.peers) options_.peers->at_step(numbers.step);
  bind_sizes(micro_batches[0]);
  Compiled& c = compiled(Part::kTrain);
  fill_inputs(c, micro_batches[0], numbers, weights[0], random_counter(numbers, 0));
  out.queued = c.executable->start(c.inputs);
  out.losses.resize(losses_.size());
  return out;
}

void Session::finish(StartedStep& step) {
  if (!step.queued) return;
  const std::vector<Array>& outputs = step.queued->wait();
  step.loss = outputs[0].number();
  for (size_t k = 0; k < step.losses.size(); ++k) step.losses[k] = outputs[k + 1].number();
  step.queued = nullptr;
}

void Session::check_device_errors() const { synchronize(options_.compile.device); }

double Session::run_micro_batch(Part part, const std::vector<Array>& batch,
                                const StepScalars& numbers, double weight, uint64_t counter) {
  const bool all = part == Part::kTrain;
  if (options_.eager) {
    const StepOutputs out = run_eager(part, batch, numbers, weight, counter);
    for (size_t k = 0; all && k < losses_.size(); ++k)
      losses_[k] = out.losses[k].array().on_host().number();
    return out.loss.array().on_host().number();
  }
  const auto& out = run_compiled(compiled(part), batch, numbers, weight, counter);
  for (size_t k = 0; all && k < losses_.size(); ++k) losses_[k] = out[k + 1].number();
  return out[0].number();
}

double Session::train_by_parts(std::span<const std::vector<Array>> micro_batches,
                               std::span<const double> weights, const StepScalars& numbers) {
  double loss = 0;
  std::fill(losses_.begin(), losses_.end(), 0);
  for (phase_ = 0; phase_ < std::max<size_t>(1, phases_.size()); ++phase_) {
    double of_phase = 0;
    for (size_t i = 0; i < micro_batches.size(); ++i) {
      bind_sizes(micro_batches[i]);
      of_phase += weights[i] * run_micro_batch(Part::kAccumulate, micro_batches[i], numbers,
                                               weights[i], random_counter(numbers, i));
    }
    loss += of_phase;
    const UpdateKind update = phases_[phase_].update;
    if (!losses_.empty()) losses_[update.optimizer] += of_phase;
    if (!update.is_due(numbers.step)) continue;
    if (options_.eager)
      run_eager(Part::kApply, {}, numbers, 1, 0);
    else
      run_compiled(compiled(Part::kApply), {}, numbers, 1, 0);
  }
  phase_ = 0;
  return loss;
}

EvaluationResult Session::evaluate(const std::vector<Array>& batch) {
  EvaluationResult result;
  const RowRange all = {0, batch.at(0).shape.at(0)};
  if (options_.eager) {
    const StepOutputs out = run_eager(Part::kEvaluate, batch, {}, 1, 0);
    result.loss = out.loss.array().on_host().number();
    for (const BoundMetric& metric : out.metrics) {
      auto& arrays = result.metric_operands.emplace_back();
      for (const Tensor& t : metric.operands) arrays.push_back(t.array().on_host());
    }
    result.metric_rows.assign(result.metric_operands.size(), all);
    return result;
  }
  bind_sizes(batch);
  Compiled& c = compiled(Part::kEvaluate);
  if (c.cut) {
    fill_inputs(c, batch, {}, 1, 0);
    return evaluate_pipelined(c);
  }
  const std::vector<Array>& out = run_compiled(c, batch, {}, 1, 0);
  result.loss = out[0].number();
  size_t at = 1;
  for (const size_t count : c.metric_sizes) {
    result.metric_operands.emplace_back(out.begin() + static_cast<ptrdiff_t>(at),
                                        out.begin() + static_cast<ptrdiff_t>(at + count));
    at += count;
  }
  result.metric_rows = c.metric_rows;
  result.metric_rows.resize(c.metric_sizes.size(), all);
  return result;
}

const Array& Session::predict(const std::vector<Array>& batch) {
  if (options_.eager) {
    prediction_ = run_eager(Part::kPredict, batch, {}, 1, 0).prediction.array().on_host();
    return prediction_;
  }
  bind_sizes(batch);
  return run_compiled(compiled(Part::kPredict), batch, {}, 1, 0)[0];
}

std::map<std::string, Array> Session::output_gradients(const std::vector<Array>& batch) {
  bind_sizes(batch);
  Compiled& c = compiled(Part::kGradients);
  const std::vector<Array>& values = run_compiled(c, batch, {}, 1, 0);
  std::map<std::string, Array> out;
  for (size_t i = 1; i < values.size(); ++i)  // the first one is the loss
    if (const ir::Port& port = c.function->outputs[i]; port.kind == ir::PortKind::kValue)
      out[port.name] = values[i];
  return out;
}

runtime::Plan& Session::plan(Part part, const std::vector<Dims>& shapes) {
  bind_sizes(shapes);
  Compiled& c = compiled(part);
  std::vector<Layout> layouts;
  for (size_t i = 0; i < c.inputs.size(); ++i) {
    const TensorType& type = c.function->body.arguments[i]->type;
    const DType dtype = type.dtype;
    if (is_partitioned(part))
      layouts.push_back(Layout::contiguous(dtype, concrete(type.shape)));
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
  if (options_.accumulate <= 1) {
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
  if (options_.accumulate <= 1) return plan(Part::kTrain, shapes).flops();
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
