#include "train/step.h"

#include "autograd/autocast.h"
#include "autograd/autograd.h"
#include "nn/metric.h"
#include "ops/operators.h"

namespace paddle::train {

StepOutputs Step::forward(Ports& ports, const StepInputs& inputs, bool training) const {
  std::optional<autograd::Autocast> autocast;
  std::optional<InterpreterScope> casting;
  if (d_.low) casting.emplace(autocast.emplace(*d_.low));
  model::EvaluationOptions options;
  options.training = training;
  options.store = &ports;
  const model::Program& program = *d_.program;
  Tensors operands;
  for (const model::Input& input : program.model.inputs)
    operands.push_back(inputs.fields.at(input.name.text));
  model::NamedValues names;
  for (const auto& [name, tensor] : inputs.fields) names.push_back({name, model::Value(tensor)});
  for (model::NamedTensor& output : model::run_entry(program, program.model, operands, options))
    names.push_back({output.name, model::Value(output.tensor)});

  StepOutputs out;
  const model::Value loss = model::run_code(d_.loss, names, options);
  if (!loss.is_tensor())
    throw Error(ErrorCode::kConfig, "loss: expected a tensor, found " + loss.describe(),
                d_.loss.where.place());
  out.loss = loss.tensor();
  if (out.loss.ndim() != 0)
    throw Error(
        ErrorCode::kConfig,
        str("loss: expected one number, found ", out.loss.type(), "; reduce it with mean or sum"),
        d_.loss.where.place());
  if (!is_float(out.loss.dtype()))
    throw Error(ErrorCode::kConfig, str("loss: expected a floating value, found ", out.loss.type()),
                d_.loss.where.place());
  if (training) return out;
  for (const MetricCall& metric : d_.metrics) {
    Tensors taken;
    const nn::MetricInfo& info = *nn::find_metric(metric.metric);
    options.functions[metric.metric] = [&](std::vector<model::Value> positional,
                                           model::NamedValues named, const model::Where&) {
      for (const model::Value& v : positional)
        if (v.is_tensor() && taken.size() < info.operands.size()) taken.push_back(v.tensor());
      for (const auto& [name, v] : named)
        if (v.is_tensor()) taken.push_back(v.tensor());
      return model::Value(int64_t{0});
    };
    model::run_code(metric.code, names, options);
    if (taken.size() != info.operands.size())
      throw Error(ErrorCode::kConfig,
                  str("metric '", metric.name, "': ", metric.metric, " takes ",
                      join(info.operands, " and ")),
                  metric.code.where.place());
    out.metric_operands.push_back(std::move(taken));
  }
  return out;
}

std::vector<std::string> Step::trainable(const Ports& ports) const {
  std::vector<std::string> names;
  for (const std::string& name : ports.used())
    if (!d_.optimizer->is_frozen(name)) names.push_back(name);
  return names;
}

Tensors Step::gradients(Ports& ports, const Tensor& loss,
                        const std::vector<std::string>& names) const {
  Tensors parameters;
  for (const std::string& name : names) parameters.push_back(ports.existing(name));
  const autograd::NoGradScope no_second_order;
  return autograd::grad({loss}, parameters, {}, true);
}

void Step::update(Ports& ports, const StepInputs& inputs, const std::vector<std::string>& names,
                  const Tensors& raw) const {
  const autograd::NoGradScope no_grad;
  const Tensors gradients = optim::clip_gradients(raw, d_.clip);
  for (size_t i = 0; i < names.size(); ++i) {
    if (!gradients[i].defined()) continue;  // has no part in the loss
    const Tensor parameter = ports.existing(names[i]);
    const Dims shape = concrete(parameter.shape());
    Tensors states;
    std::vector<std::string> slots;
    for (const optim::StateSlot& slot : d_.optimizer->slots()) {
      slots.push_back("optimizer/" + names[i] + "/" + slot.name);
      states.push_back(ports.slot(slots.back(), shape, parameter.dtype(), slot.initial));
    }
    const Tensors updated = d_.optimizer->update(names[i], parameter, gradients[i], states,
                                                 inputs.learning_rate, inputs.step);
    ports.set_parameter(names[i], updated[0]);
    for (size_t s = 0; s < slots.size(); ++s) ports.set_slot(slots[s], updated[s + 1]);
  }
}

StepOutputs Step::train(Ports& ports, const StepInputs& inputs) const {
  StepOutputs out = forward(ports, inputs, true);
  const auto names = trainable(ports);
  update(ports, inputs, names, gradients(ports, out.loss, names));
  return out;
}

StepOutputs Step::accumulate(Ports& ports, const StepInputs& inputs) const {
  StepOutputs out = forward(ports, inputs, true);
  const auto names = trainable(ports);
  const Tensors grads = gradients(ports, out.loss, names);
  const autograd::NoGradScope no_grad;
  for (size_t i = 0; i < names.size(); ++i) {
    if (!grads[i].defined()) continue;
    const Tensor parameter = ports.existing(names[i]);
    const std::string slot = "gradient/" + names[i];
    const Tensor sum = ports.slot(slot, concrete(parameter.shape()), parameter.dtype(), 0);
    ports.set_slot(slot, sum + grads[i] * ops::cast(inputs.weight, grads[i].dtype()));
  }
  return out;
}

void Step::apply(Ports& ports, const StepInputs& inputs,
                 const std::vector<std::string>& parameters) const {
  Tensors sums;
  for (const std::string& name : parameters) {
    const Tensor parameter = ports.existing(name);
    sums.push_back(
        ports.slot("gradient/" + name, concrete(parameter.shape()), parameter.dtype(), 0));
  }
  update(ports, inputs, parameters, sums);
  for (size_t i = 0; i < parameters.size(); ++i)
    ports.set_slot("gradient/" + parameters[i], zeros_like(sums[i]));
}

StepOutputs Step::evaluate(Ports& ports, const StepInputs& inputs) const {
  const autograd::NoGradScope no_grad;
  return forward(ports, inputs, false);
}

}  // namespace paddle::train
