#include "train/session/session.h"

#include <algorithm>
#include <optional>

#include "runtime/execute.h"
#include "train/session/batch_statistics.h"

namespace paddle::train {
Session::Session(std::shared_ptr<const Step> step, std::vector<FieldType> fields,
                 program::ParameterStore& store, SessionOptions options)
    : context_{std::move(step), std::move(fields), store, std::move(options)},
      shards_(context_),
      tables_(context_),
      compiler_(context_, shards_, tables_),
      executor_(context_, compiler_, tables_),
      pipeline_(context_, compiler_, executor_),
      analysis_(context_, compiler_),
      replay_(context_, compiler_, executor_, shards_, tables_) {
  runtime::register_backends();
  store.seed = context_.options.seed;
  // A minimizer sums up gradients in every case, and accumulates nothing else.
  if (context_.step->minimizer()) context_.options.accumulate = 1;
  for (const NamedOptimizer& each : context_.step->definition().optimizers)
    if (!each.name.empty()) losses_.push_back(0);
  if (comm::Communicator* const communicator = context_.options.communicator.get()) {
    const TargetInfo& target = context_.options.compile.target;
    if (communicator->size() > 1 && !has_kernel(get_op("comm.all_reduce"), target))
      fail(ErrorCode::kUsage, target.device.text(),
           " has no kernel of comm.all_reduce, which runs of several ranks need");
    auto& collectives = communicator->collectives();
    collectives.use(context_.options.collective_form);
    collectives.overlap(context_.options.overlap.value_or(communicator->can_overlap()));
  }
}

Session::~Session() {
  if (context_.options.communicator) context_.options.communicator->abort_pending();
}

void Session::init_mixed_precision() {
  for (const NamedOptimizer& each : context_.step->definition().optimizers)
    if (!each.name.empty())
      context_.store.states.emplace(Step::counter(each.name), Array::scalar(int64_t{0}));
  if (const auto* scaling = context_.step->definition().scaling()) {
    context_.store.states.emplace("amp/scale", Array::scalar(static_cast<float>(scaling->initial)));
    for (const char* name : {"amp/good", "amp/bad", "amp/updates", "amp/skipped"})
      context_.store.states.emplace(name, Array::scalar(int64_t{0}));
  }
  const auto& mixed = context_.step->definition().mixed;
  if (!mixed || !mixed->cast.all_low) return;
  // A trace makes the parameters and tells which of them are wanted in float32.
  ir::Function f("parameters");
  compiler_.trace(f, StepFunction::kEvaluate,
                  [&](ir::Tracer&, program::TraceBinding& ports, const StepOutputs&) {
                    for (const auto& [name, parameter] : context_.store.parameters)
                      if (parameter.value.dtype == DType::kF32 && !ports.kept.contains(name) &&
                          !context_.store.master(name))
                        context_.store.keep_in_16_bits(name, mixed->cast.low);
                  });
}

void Session::prepare() {
  init_mixed_precision();
  if (context_.options.accumulate <= 1 && context_.step->reads_norms() &&
      !context_.step->minimizer() && !context_.is_pipelined()) {
    // A trace tells whether the models have tables.
    ir::Function f("tables");
    compiler_.trace(f, StepFunction::kEvaluate,
                    [](ir::Tracer&, program::TraceBinding&, const StepOutputs&) {});
  }
  if (context_.options.eager) {
    // A trace makes the parameters; it is not run.
    if (context_.store.parameters.empty()) compiler_.compile(StepFunction::kEvaluate);
    make_minimizer_states();
    return;
  }
  if (!compiler_.accumulates() && !context_.is_pipelined()) {
    compiler_.compiled(StepFunction::kTrain);
    make_minimizer_states();
    return;
  }
  do {
    compiler_.compiled(StepFunction::kAccumulate);
    compiler_.compiled(StepFunction::kApply);
    compiler_.set_phase(compiler_.phase() + 1);
  } while (compiler_.phase() < compiler_.phases().size());
  compiler_.set_phase(0);
}

void Session::start_copies() {
  for (const auto& [name, parameter] : context_.store.parameters) {
    const Array* exact = context_.store.master(name);
    const Array& value = exact ? *exact : parameter.value;
    if (!context_.store.initializes(value.size())) continue;
    for (const std::string& state : context_.step->copies(name, value.shape))
      if (const auto it = context_.store.states.find(state); it != context_.store.states.end())
        it->second = runtime::copied(value);
  }
}

void Session::begin_step(const StepScalars& numbers) {
  compiler_.set_step(numbers.step);
  if (context_.options.communicator) context_.options.communicator->set_step(numbers.step);
}

double Session::train(std::span<const std::vector<Array>> micro_batches,
                      std::span<const double> weights, const StepScalars& numbers) {
  begin_step(numbers);
  if (context_.step->minimizer()) return minimize(micro_batches, weights, numbers);
  if (context_.is_pipelined()) return pipeline_.train(micro_batches, weights, numbers);
  if (compiler_.accumulates()) return train_accumulated(micro_batches, weights, numbers);
  double loss = 0;
  for (size_t i = 0; i < micro_batches.size(); ++i) {
    read_tables(StepFunction::kTrain, micro_batches.subspan(i, 1));
    compiler_.bind_sizes(micro_batches[i]);
    // Every micro-batch draws its own random numbers.
    loss += weights[i] * run_micro_batch(StepFunction::kTrain, micro_batches[i], numbers,
                                         weights[i], context_.random_counter(numbers, i));
    tables_.update(numbers);
  }
  return loss;
}

StartedStep Session::start(std::span<const std::vector<Array>> micro_batches,
                           std::span<const double> weights, const StepScalars& numbers) {
  StartedStep out;
  const bool queues = !context_.options.compile.target.device.is_cpu() && !context_.options.eager &&
                      !context_.step->minimizer() && !context_.is_pipelined() &&
                      !compiler_.accumulates() && micro_batches.size() == 1 && weights[0] == 1;
  if (!queues) {
    out.loss = train(micro_batches, weights, numbers);
    out.losses = losses_;
    return out;
  }
  begin_step(numbers);
  compiler_.bind_sizes(micro_batches[0]);
  CompiledFunction& c = compiler_.compiled(StepFunction::kTrain);
  executor_.fill_inputs(c, micro_batches[0], numbers, weights[0],
                        context_.random_counter(numbers, 0));
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

void Session::check_device_errors() const { synchronize(context_.options.compile.target.device); }

double Session::run_micro_batch(StepFunction kind, const std::vector<Array>& batch,
                                const StepScalars& numbers, double weight, uint64_t counter) {
  const bool all = kind == StepFunction::kTrain;
  if (context_.options.eager) {
    const StepOutputs out = executor_.run_eager(kind, batch, numbers, weight, counter);
    for (size_t k = 0; all && k < losses_.size(); ++k)
      losses_[k] = out.losses[k].array().on_host().number();
    return out.loss.array().on_host().number();
  }
  CompiledFunction& c = compiler_.compiled(kind);
  const auto& out = executor_.run(c, batch, numbers, weight, counter);
  tables_.take_gradients(c, out);
  for (size_t k = 0; all && k < losses_.size(); ++k) losses_[k] = out[k + 1].number();
  return out[0].number();
}

double Session::train_accumulated(std::span<const std::vector<Array>> micro_batches,
                                  std::span<const double> weights, const StepScalars& numbers) {
  double loss = 0;
  std::fill(losses_.begin(), losses_.end(), 0);
  for (size_t phase = 0; phase < std::max<size_t>(1, compiler_.phases().size()); ++phase) {
    compiler_.set_phase(phase);
    double of_phase = 0;
    read_tables(StepFunction::kAccumulate, micro_batches);
    for (size_t i = 0; i < micro_batches.size(); ++i) {
      compiler_.bind_sizes(micro_batches[i]);
      of_phase += weights[i] * run_micro_batch(StepFunction::kAccumulate, micro_batches[i], numbers,
                                               weights[i], context_.random_counter(numbers, i));
    }
    loss += of_phase;
    const UpdateKind update = compiler_.phases()[phase].update;
    if (!losses_.empty()) losses_[update.optimizer] += of_phase;
    if (!update.is_due(numbers.step)) continue;
    apply_accumulated(numbers);
  }
  compiler_.set_phase(0);
  return loss;
}

void Session::read_tables(StepFunction kind, std::span<const std::vector<Array>> micro_batches) {
  if (tables_.empty()) return;
  tables_.begin(kind);
  if (context_.options.eager) return;
  for (const std::vector<Array>& batch : micro_batches) {
    compiler_.bind_sizes(batch);
    tables_.add(compiler_.compiled(kind), batch);
  }
  tables_.fetch();
}

void Session::announce(std::span<const std::vector<Array>> micro_batches) {
  // Call by call, a step finds its keys by and by.
  if (!tables_.tables().are_shared() || context_.options.eager) return;
  const StepFunction kind =
      compiler_.accumulates() ? StepFunction::kAccumulate : StepFunction::kTrain;
  std::vector<TableUse> uses;
  for (const std::vector<Array>& batch : micro_batches) {
    compiler_.bind_sizes(batch);
    for (TableUse& use : tables_.uses(compiler_.compiled(kind), batch))
      uses.push_back(std::move(use));
  }
  tables_.announce(uses);
}

void Session::apply_accumulated(const StepScalars& numbers) {
  if (context_.step->reads_norms()) tables_.sum_squares();
  std::map<std::string, double> scales;
  if (context_.options.eager) {
    const StepOutputs out = executor_.run_eager(StepFunction::kApply, {}, numbers, 1, 0);
    for (const auto& [table, scale] : out.table_scales)
      scales[table] = scale.array().on_host().number();
  } else {
    CompiledFunction& c = compiler_.compiled(StepFunction::kApply);
    const std::vector<Array>& out = executor_.run(c, {}, numbers, 1, 0);
    for (const NormPorts& each : c.norms)
      if (each.scale >= 0) scales[each.table] = out[static_cast<size_t>(each.scale)].number();
  }
  tables_.update(numbers, scales);
}

double Session::divisor(const std::vector<Array>& batch) {
  compiler_.bind_sizes(batch);
  return executor_.run(compiler_.compiled(StepFunction::kDivisor), batch, {}, 1, 0)[0].number();
}

std::vector<LongLabels> Session::long_labels(const std::vector<Array>& batch) {
  std::vector<Array> values;
  for (const Array& value : executor_.run(StepFunction::kAlignment, batch))
    values.push_back(value.on_host().contiguous());
  return train::long_labels(values);
}

EvaluationResult Session::evaluate(const std::vector<Array>& batch) {
  EvaluationResult result;
  const RowRange all = {0, batch.at(0).shape.at(0)};
  if (context_.options.eager) {
    const StepOutputs out = executor_.run_eager(StepFunction::kEvaluate, batch, {}, 1, 0);
    result.loss = out.loss.array().on_host().number();
    for (const BoundMetric& metric : out.metrics) {
      auto& arrays = result.metric_operands.emplace_back();
      for (const Tensor& t : metric.operands) arrays.push_back(t.array().on_host());
    }
    result.metric_rows.assign(result.metric_operands.size(), all);
    return result;
  }
  compiler_.bind_sizes(batch);
  CompiledFunction& c = compiler_.compiled(StepFunction::kEvaluate);
  std::vector<Array> gathered;
  if (c.cut) {
    executor_.fill_inputs(c, batch, {}, 1, 0);
    gathered = pipeline_.run_forward(c);
  }
  const std::vector<Array>& out = c.cut ? gathered : executor_.run(c, batch, {}, 1, 0);
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
  if (context_.options.eager) {
    prediction_ =
        executor_.run_eager(StepFunction::kPredict, batch, {}, 1, 0).prediction.array().on_host();
    return prediction_;
  }
  compiler_.bind_sizes(batch);
  return executor_.run(compiler_.compiled(StepFunction::kPredict), batch, {}, 1, 0)[0];
}

std::map<std::string, Array> Session::output_gradients(const std::vector<Array>& batch) {
  compiler_.bind_sizes(batch);
  CompiledFunction& c = compiler_.compiled(StepFunction::kGradients);
  const std::vector<Array>& values = executor_.run(c, batch, {}, 1, 0);
  std::map<std::string, Array> out;
  for (size_t i = 1; i < values.size(); ++i)  // the first one is the loss
    if (const ir::Port& port = c.function->outputs[i]; port.kind == ir::PortKind::kValue)
      out[port.name] = values[i];
  return out;
}

std::vector<std::pair<std::string, Array>> Session::batch_statistics(
    const std::vector<Array>& batch, int64_t number) {
  std::vector<std::pair<std::string, Array>> out;
  StepScalars numbers;
  numbers.step = number;
  const auto counter = static_cast<uint64_t>(number);
  if (context_.options.eager) {
    std::map<const void*, std::string> states;
    for (const auto& [name, value] : context_.store.states) states[value.raw()] = name;
    BatchStatistics watch;
    executor_.run_eager(StepFunction::kStatistics, batch, numbers, 1, counter, &watch);
    for (const BatchStatistics::Value& value : watch.values())
      if (const auto state = states.find(value.state.array().raw()); state != states.end())
        out.emplace_back(state->second, value.of_batch.array().on_host());
    return out;
  }
  compiler_.bind_sizes(batch);
  CompiledFunction& c = compiler_.compiled(StepFunction::kStatistics);
  executor_.fill_inputs(c, batch, numbers, 1, counter);
  const std::vector<Array> values = c.cut ? pipeline_.run_forward(c) : c.executable->run(c.inputs);
  for (size_t i = 0; i < values.size(); ++i)
    out.emplace_back(c.statistics.at(i), values[i].on_host());
  return out;
}

}  // namespace paddle::train
