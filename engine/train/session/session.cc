#include "train/session/session.h"

#include <algorithm>
#include <map>
#include <optional>

#include "autograd/autograd.h"
#include "ops/core/call.h"
#include "runtime/execute.h"
#include "train/session/compiled_part.h"

namespace paddle::train {

Session::Session(std::shared_ptr<const Step> step, std::vector<FieldType> fields,
                 program::ParameterStore& store, SessionOptions options)
    : step_(std::move(step)),
      fields_(std::move(fields)),
      store_(store),
      options_(std::move(options)),
      tables_(store, step_->definition().optimizers.front().optimizer, tables_rejection(),
              options_.mesh.size() > 1 ? options_.communicator : nullptr) {
  store_.seed = options_.seed;
  // A minimizer sums up gradients in every case, and has no other part.
  if (step_->minimizer()) options_.accumulate = 1;
  module_.name = step_->definition().exported().name;
  for (const NamedOptimizer& each : step_->definition().optimizers)
    if (!each.name.empty()) losses_.push_back(0);
  bind_sizes(options_.shapes);
  if (comm::Communicator* const communicator = options_.communicator.get())
    communicator->overlap(options_.overlap.value_or(communicator->can_overlap()));
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
  if (options_.communicator) options_.communicator->abort_pending();
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
      return step_->apply(ports, inputs, phases_.at(phase_).update.optimizer,
                          phases_.at(phase_).parameters);
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

// --- compiled ---

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
        c.inputs[i] = partition::shard(c.inputs[i], c.placement[i], options_.mesh,
                                       options_.communicator->rank());
    }
    if (Array* const stored = c.stored[i]) {
      if (stored->device() != options_.compile.target.device)
        *stored = stored->to(options_.compile.target.device);
      c.inputs[i] = *stored;
    }
  }
  fill_rows(c, batch);
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
  runtime::EagerExecutor executor(options_.compile.target);
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
  if (part == Part::kApply)
    for (const auto& [table, sum] : table_squares_)
      inputs.table_squares.emplace_back(table, Tensor(Array::scalar(sum)));
  connect_tables(ports, inputs, part);
  const bool trains = part == Part::kTrain || part == Part::kAccumulate;
  if (!trains && part != Part::kApply) tables_.begin_step(missing_rows(part));
  const size_t first_use = next_use_;
  const StepOutputs out = run_part(part, ports, inputs);
  if (part != Part::kStatistics) ports.finish();
  if (trains) take_gradients(out, ports, first_use);
  if (part == Part::kAccumulate) record_phase(out);
  return out;
}

// --- steps ---

void Session::init_mixed_precision() {
  for (const NamedOptimizer& each : step_->definition().optimizers)
    if (!each.name.empty())
      store_.states.emplace(Step::counter(each.name), Array::scalar(int64_t{0}));
  if (const auto* scaling = step_->definition().scaling()) {
    store_.states.emplace("amp/scale", Array::scalar(static_cast<float>(scaling->initial)));
    for (const char* name : {"amp/good", "amp/bad", "amp/updates", "amp/skipped"})
      store_.states.emplace(name, Array::scalar(int64_t{0}));
  }
  const auto& mixed = step_->definition().mixed;
  if (!mixed || !mixed->cast.all_low) return;
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
  init_mixed_precision();
  if (options_.accumulate <= 1 && step_->reads_norms() && !step_->minimizer() && !is_pipelined()) {
    // A trace tells whether the models have tables.
    ir::Function f("tables");
    trace_part(f, Part::kEvaluate, [](ir::Tracer&, program::TraceBinding&, const StepOutputs&) {});
  }
  if (options_.eager) {
    // A trace makes the parameters; it is not run.
    if (store_.parameters.empty()) trace(Part::kEvaluate);
    make_minimizer_states();
    return;
  }
  if (!updates_by_parts() && !is_pipelined()) {
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
  if (options_.communicator) options_.communicator->set_step(numbers.step);
  if (step_->minimizer()) return minimize(micro_batches, weights, numbers);
  if (is_pipelined()) return train_pipelined(micro_batches, weights, numbers);
  if (updates_by_parts()) return train_by_parts(micro_batches, weights, numbers);
  double loss = 0;
  for (size_t i = 0; i < micro_batches.size(); ++i) {
    begin_tables(Part::kTrain, micro_batches.subspan(i, 1));
    bind_sizes(micro_batches[i]);
    // Every micro-batch draws its own random numbers.
    loss += weights[i] * run_micro_batch(Part::kTrain, micro_batches[i], numbers, weights[i],
                                         random_counter(numbers, i));
    update_tables(numbers);
  }
  return loss;
}

StartedStep Session::start(std::span<const std::vector<Array>> micro_batches,
                           std::span<const double> weights, const StepScalars& numbers) {
  StartedStep out;
  const bool queues = !options_.compile.target.device.is_cpu() && !options_.eager &&
                      !step_->minimizer() && !is_pipelined() && !updates_by_parts() &&
                      micro_batches.size() == 1 && weights[0] == 1;
  if (!queues) {
    out.loss = train(micro_batches, weights, numbers);
    out.losses = losses_;
    return out;
  }
  step_number_ = numbers.step;
  if (options_.communicator) options_.communicator->set_step(numbers.step);
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

void Session::check_device_errors() const { synchronize(options_.compile.target.device); }

double Session::run_micro_batch(Part part, const std::vector<Array>& batch,
                                const StepScalars& numbers, double weight, uint64_t counter) {
  const bool all = part == Part::kTrain;
  if (options_.eager) {
    const StepOutputs out = run_eager(part, batch, numbers, weight, counter);
    for (size_t k = 0; all && k < losses_.size(); ++k)
      losses_[k] = out.losses[k].array().on_host().number();
    return out.loss.array().on_host().number();
  }
  Compiled& c = compiled(part);
  const auto& out = run_compiled(c, batch, numbers, weight, counter);
  take_gradients(c, out);
  for (size_t k = 0; all && k < losses_.size(); ++k) losses_[k] = out[k + 1].number();
  return out[0].number();
}

double Session::train_by_parts(std::span<const std::vector<Array>> micro_batches,
                               std::span<const double> weights, const StepScalars& numbers) {
  double loss = 0;
  std::fill(losses_.begin(), losses_.end(), 0);
  for (phase_ = 0; phase_ < std::max<size_t>(1, phases_.size()); ++phase_) {
    double of_phase = 0;
    begin_tables(Part::kAccumulate, micro_batches);
    for (size_t i = 0; i < micro_batches.size(); ++i) {
      bind_sizes(micro_batches[i]);
      of_phase += weights[i] * run_micro_batch(Part::kAccumulate, micro_batches[i], numbers,
                                               weights[i], random_counter(numbers, i));
    }
    loss += of_phase;
    const UpdateKind update = phases_[phase_].update;
    if (!losses_.empty()) losses_[update.optimizer] += of_phase;
    if (!update.is_due(numbers.step)) continue;
    apply_accumulated(numbers);
  }
  phase_ = 0;
  return loss;
}

double Session::divisor(const std::vector<Array>& batch) {
  bind_sizes(batch);
  return run_compiled(compiled(Part::kDivisor), batch, {}, 1, 0)[0].number();
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

}  // namespace paddle::train
