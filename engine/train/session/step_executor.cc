#include "train/session/step_executor.h"

#include <algorithm>
#include <optional>

#include "autograd/autograd.h"
#include "ops/core/call.h"
#include "runtime/execute.h"

namespace paddle::train {

void StepExecutor::fill_inputs(CompiledFunction& c, const std::vector<Array>& batch,
                               const StepScalars& numbers, double weight, uint64_t counter) {
  for (size_t i = 0; i < c.inputs.size(); ++i) {
    if (const auto field = static_cast<size_t>(c.field[i]); c.field[i] >= 0) {
      context_.put_field(c.inputs[i], batch[field], field);
      if (!c.placement[i].empty())
        c.inputs[i] =
            partition::shard(c.inputs[i], c.placement[i], context_.options.mesh, context_.rank());
    }
    if (Array* const stored = c.stored[i]) {
      if (stored->device() != context_.options.compile.target.device)
        *stored = stored->to(context_.options.compile.target.device);
      c.inputs[i] = *stored;
    }
  }
  tables_.fill(c, batch);
  for (size_t i = 0; i < std::min(c.learning_rates.size(), numbers.learning_rates.size()); ++i) {
    Array& rate = c.inputs[static_cast<size_t>(c.learning_rates[i])];
    if (context_.options.use_float64)
      *rate.data<double>() = numbers.learning_rates[i];
    else
      *rate.data<float>() = static_cast<float>(numbers.learning_rates[i]);
  }
  if (c.step >= 0) *c.inputs[static_cast<size_t>(c.step)].data<int64_t>() = numbers.step;
  if (c.weight >= 0) *c.inputs[static_cast<size_t>(c.weight)].data<double>() = weight;
  if (c.random >= 0) {
    uint64_t* random = c.inputs[static_cast<size_t>(c.random)].data<uint64_t>();
    random[0] = context_.options.seed;
    random[1] = counter;
  }
}

const std::vector<Array>& StepExecutor::run(CompiledFunction& c, const std::vector<Array>& batch,
                                            const StepScalars& numbers, double weight,
                                            uint64_t counter) {
  fill_inputs(c, batch, numbers, weight, counter);
  return c.executable->run(c.inputs);
}

const std::vector<Array>& StepExecutor::run(StepFunction kind, const std::vector<Array>& batch) {
  compiler_.bind_sizes(batch);
  return run(compiler_.compiled(kind), batch, {}, 1, 0);
}

StepOutputs StepExecutor::run_eager(StepFunction kind, const std::vector<Array>& batch,
                                    const StepScalars& numbers, double weight, uint64_t counter,
                                    Interpreter* watch) {
  runtime::EagerExecutor executor(context_.options.compile.target,
                                  context_.options.compile.prepare);
  const InterpreterScope eager(executor);
  autograd::Tape tape;
  const InterpreterScope recording(tape);
  std::optional<InterpreterScope> watching;
  if (watch) watching.emplace(*watch);
  const RandomScope random(Tensor(Array::from<uint64_t>({context_.options.seed, counter}, {2})));
  program::EagerBinding ports(context_.store, context_.options.use_float64);
  ports.frozen = context_.frozen();
  StepInputs inputs;
  if (kind != StepFunction::kApply)
    for (size_t i = 0; i < context_.fields.size(); ++i) {
      Array array;
      context_.put_field(array, batch[i], i);
      inputs.fields[context_.fields[i].name] = Tensor(std::move(array));
    }
  for (size_t i = 0; i < context_.step->definition().optimizers.size(); ++i) {
    const double rate = i < numbers.learning_rates.size() ? numbers.learning_rates[i] : 0;
    inputs.learning_rates.push_back(Tensor(context_.options.use_float64
                                               ? Array::scalar(rate)
                                               : Array::scalar(static_cast<float>(rate))));
  }
  inputs.step_number = compiler_.step_number();
  inputs.step = Tensor(Array::scalar(numbers.step));
  inputs.weight = Tensor(Array::scalar(weight));
  if (kind == StepFunction::kApply)
    for (const auto& [table, sum] : tables_.squares())
      inputs.table_squares.emplace_back(table, Tensor(Array::scalar(sum)));
  tables_.connect(ports, inputs, kind);
  if (!trains(kind) && kind != StepFunction::kApply) tables_.begin(kind);
  const size_t first_use = tables_.next_use();
  StepOutputs out = compiler_.run_step(kind, ports, inputs);
  if (kind != StepFunction::kStatistics) ports.finish();
  if (trains(kind)) tables_.take_gradients(out, ports, first_use);
  if (kind == StepFunction::kAccumulate) compiler_.record_phase(out);
  return out;
}

}  // namespace paddle::train
