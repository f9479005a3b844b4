// Updates by an optimizer that evaluates the loss several times: each evaluation is one run of the
// step's function for every micro-batch, which sums up gradients.

#include <cmath>
#include <cstring>

#include "optim/optimizer.h"
#include "train/session/session.h"

namespace paddle::train {
namespace {

/// The state with what the minimizer keeps besides vectors.
std::string numbers_state(const optim::Optimizer& minimizer) { return "train/" + minimizer.name(); }

}  // namespace

void Session::make_minimizer_states() {
  const optim::Optimizer* const minimizer = context_.step->minimizer();
  if (!minimizer) return;
  for (const auto& [name, parameter] : context_.store.parameters) {
    if (context_.step->definition().is_frozen(name)) continue;
    const DType dtype = parameter.value.dtype;
    context_.store.states.emplace(Step::gradient_state(name),
                                  Array::zeros(dtype, parameter.value.shape));
    for (const optim::StateSlot& slot : minimizer->slots(name, parameter.value.shape))
      context_.store.states.emplace(
          Step::optimizer_state(name, slot.name),
          Array::zeros(dtype, slot.shape.value_or(parameter.value.shape)));
  }
  context_.store.states.emplace(
      numbers_state(*minimizer),
      Array::zeros(DType::kF64, {minimizer->minimizer()->number_count()}));
  if (context_.step->definition().keeps_gradient_norm)
    context_.store.states.emplace(kGradientNorm, Array::scalar(0.0));
}

double Session::minimize(std::span<const std::vector<Array>> micro_batches,
                         std::span<const double> weights, const StepScalars& numbers) {
  std::vector<std::string> names;
  for (const auto& [name, parameter] : context_.store.parameters)
    if (context_.store.states.contains(Step::gradient_state(name)) &&
        !context_.step->definition().is_frozen(name))
      names.push_back(name);
  optim::Pieces parameters, gradients;
  const optim::Optimizer& optimizer = *context_.step->minimizer();
  optim::Minimizer::Memory memory;
  const auto on_host = [](Array& array) { return array = array.on_host(); };
  for (const std::string& name : names) {
    parameters.push_back(on_host(context_.store.parameters.at(name).value));
    gradients.push_back(on_host(context_.store.states.at(Step::gradient_state(name))));
    const std::vector<optim::StateSlot> slots =
        optimizer.slots(name, context_.store.parameters.at(name).value.shape);
    memory.states.resize(slots.size());
    for (size_t i = 0; i < slots.size(); ++i)
      memory.states[i].push_back(
          on_host(context_.store.states.at(Step::optimizer_state(name, slots[i].name))));
  }
  memory.states.resize(optimizer.slots("", {}).size());  // also where all parameters are frozen
  memory.numbers = on_host(context_.store.states.at(numbers_state(optimizer)));
  const auto zero = [](const Array& array) {
    std::memset(array.raw(), 0, static_cast<size_t>(array.size() * item_size(array.dtype)));
  };
  // The store's arrays are those of the host where the device is the host.
  const bool is_here = context_.options.compile.target.device.is_cpu();
  bool is_first = true;
  const double loss = optimizer.minimizer()->minimize(
      numbers.learning_rates[0], parameters, gradients, memory, [&] {
        for (size_t i = 0; i < names.size(); ++i) {
          zero(gradients[i]);
          context_.store.parameters.at(names[i]).value = parameters[i];
          context_.store.states.at(Step::gradient_state(names[i])) = gradients[i];
        }
        double sum = 0;
        for (size_t i = 0; i < micro_batches.size(); ++i) {
          compiler_.bind_sizes(micro_batches[i]);
          // The same random numbers in all evaluations of an update.
          const auto counter = static_cast<uint64_t>(numbers.step) * micro_batches.size() + i;
          sum += weights[i] * run_micro_batch(StepFunction::kTrain, micro_batches[i], numbers,
                                              weights[i], counter);
        }
        double squares = 0;
        for (size_t i = 0; i < names.size(); ++i) {
          const Array now = context_.store.states.at(Step::gradient_state(names[i])).on_host();
          if (now.raw() != gradients[i].raw())
            std::memcpy(gradients[i].raw(), now.raw(),
                        static_cast<size_t>(now.size() * item_size(now.dtype)));
          if (!is_first || !context_.step->definition().keeps_gradient_norm) continue;
          for (int64_t k = 0; k < now.size(); ++k) squares += now.number(k) * now.number(k);
        }
        if (is_first && context_.step->definition().keeps_gradient_norm)
          context_.store.states.at(kGradientNorm) = Array::scalar(std::sqrt(squares));
        is_first = false;
        return sum;
      });
  for (size_t i = 0; i < names.size(); ++i) {
    Array& value = context_.store.parameters.at(names[i]).value;
    value = is_here ? parameters[i] : parameters[i].to(context_.options.compile.target.device);
  }
  return loss;
}

}  // namespace paddle::train
