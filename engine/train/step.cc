#include "train/step.h"

#include <algorithm>

#include "autograd/autocast.h"
#include "autograd/autograd.h"
#include "ops/core/operators.h"
#include "ops/core/row_sparse.h"
#include "ops/generated/creation.h"
#include "ops/generated/math.h"
#include "ops/generated/nn.h"
#include "ops/generated/shape.h"

namespace paddle::train {
namespace {

bool calls(const lang::Code& code, std::string_view word) {
  return std::any_of(code.sites.begin(), code.sites.end(),
                     [&](const lang::CallSite& site) { return site.callee == word; });
}

/// The model's outputs for inputs by name.
lang::NamedValues run_model(const lang::Program& program,
                            const std::map<std::string, Tensor>& inputs,
                            const lang::EvaluationOptions& options) {
  Tensors operands;
  for (const lang::Input& input : program.model.inputs)
    operands.push_back(inputs.at(input.name.text));
  lang::NamedValues out;
  for (lang::NamedTensor& output : lang::run_entry(program, program.model, operands, options))
    out.push_back({output.name, lang::Value(output.tensor)});
  return out;
}

/// `model(image)` in a step: another call over the same parameters. Inputs that are not given are
/// the data's fields of their names.
lang::HostFunction model_function(const lang::Program& program,
                                  const std::map<std::string, Tensor>& fields,
                                  const lang::EvaluationOptions& options) {
  return [&](std::vector<lang::Value> positional, lang::NamedValues named,
             const config::SourcePosition&) {
    const auto& declared = program.model.inputs;
    std::vector<std::string> names;
    for (const lang::Input& input : declared) names.push_back(input.name.text);
    if (positional.size() > names.size())
      fail(ErrorCode::kConfig, "model: at most ", names.size(), " inputs, found ",
           positional.size());
    for (size_t i = 0; i < positional.size(); ++i) named.push_back({names[i], positional[i]});
    std::map<std::string, Tensor> inputs = fields;
    for (const auto& [name, value] : named) {
      if (std::find(names.begin(), names.end(), name) == names.end())
        fail(ErrorCode::kConfig, "model: no input is called '", name, "'",
             did_you_mean(name, names));
      if (!value.is_tensor())
        fail(ErrorCode::kConfig, "model: the input '", name, "' must be a tensor, found ",
             value.describe());
      inputs[name] = value.tensor();
    }
    lang::ValueList values;
    for (const auto& [name, value] : run_model(program, inputs, options)) values.push_back(value);
    return values.size() == 1 ? values[0] : lang::Value::tuple(std::move(values));
  };
}

/// `grad(y, x)`: the gradient of the sum of y, by a tensor or a list of them.
lang::Value gradient(std::vector<lang::Value> positional, lang::NamedValues named,
                     const config::SourcePosition&) {
  if (positional.size() != 2 || !named.empty() || !positional[0].is_tensor())
    fail(ErrorCode::kConfig, "grad takes a tensor and what to differentiate it by: grad(y, x)");
  const bool list = positional[1].items() != nullptr;
  const lang::ValueList by = list ? *positional[1].items() : lang::ValueList{positional[1]};
  Tensors inputs;
  for (const lang::Value& value : by) {
    if (!value.is_tensor())
      fail(ErrorCode::kConfig, "grad: expected a tensor, found ", value.describe());
    inputs.push_back(value.tensor());
  }
  const Tensors gradients = autograd::grad({positional[0].tensor()}, inputs);
  lang::ValueList out;
  for (size_t i = 0; i < inputs.size(); ++i)
    out.push_back(gradients[i].defined() ? gradients[i] : zeros_like(inputs[i]));
  return list ? lang::Value::list(std::move(out)) : out[0];
}

/// Runs a `step:` body and gives what its `update(loss)` minimizes. `names` gains what the body
/// assigned.
Tensor run_step(const StepDefinition& definition, std::map<std::string, Tensor> fields,
                const lang::EvaluationOptions& options, lang::NamedValues& names) {
  // Variables, so that `grad` can differentiate with respect to them.
  for (auto& [name, tensor] : fields)
    if (is_differentiable(tensor.dtype())) tensor = autograd::variable(tensor);
  names.clear();
  for (const auto& [name, tensor] : fields) names.push_back({name, lang::Value(tensor)});
  if (!calls(definition.loss, "model"))
    for (auto& output : run_model(*definition.program, fields, options)) names.push_back(output);
  Tensor loss;
  lang::EvaluationOptions inside = options;
  inside.functions["model"] = model_function(*definition.program, fields, options);
  inside.functions["grad"] = gradient;
  inside.functions["update"] = [&](std::vector<lang::Value> positional, lang::NamedValues named,
                                   const config::SourcePosition&) {
    if (!named.empty())
      fail(ErrorCode::kConfig, "update: '", named[0].first,
           "' is for steps with several optimizers, which are not supported: a step has one "
           "update(loss) over all parameters");
    if (positional.size() != 1 || !positional[0].is_tensor())
      fail(ErrorCode::kConfig, "update takes the loss, a tensor");
    if (loss.defined())
      fail(ErrorCode::kConfig,
           "update(loss) happens once in a step, outside of conditions and loops on tensors");
    loss = positional[0].tensor();
    return positional[0];
  };
  std::map<std::string, lang::Value> assigned;
  lang::run_code(definition.loss, names, inside, &assigned);
  if (!loss.defined())
    throw Error(ErrorCode::kConfig, "step: update(loss) was not reached",
                definition.loss.where.location());
  for (const auto& [name, value] : assigned) names.push_back({name, value});
  return loss;
}

}  // namespace

namespace {

DType full_type(const Tensor& t) {
  return t.dtype() == DType::kF16 || t.dtype() == DType::kBF16 ? DType::kF32 : t.dtype();
}

/// 16-bit gradients in float32; undefined ones stay so.
Tensor in_full(const Tensor& g) {
  return !g.defined() || full_type(g) == g.dtype() ? g : ops::cast(g, DType::kF32);
}

Tensor loss_scale(program::ParameterBinding& ports) {
  return ports.slot("amp/scale", {}, DType::kF32, 1);
}

optim::ScalerState scaler_state(program::ParameterBinding& ports) {
  const auto counter = [&](const char* name) { return ports.slot(name, {}, DType::kI64, 0); };
  return {loss_scale(ports), counter("amp/good"), counter("amp/bad"), counter("amp/updates"),
          counter("amp/skipped")};
}

void set_scaler_state(program::ParameterBinding& ports, const optim::ScalerState& state) {
  ports.set_slot("amp/scale", state.scale);
  ports.set_slot("amp/good", state.good);
  ports.set_slot("amp/bad", state.bad);
  ports.set_slot("amp/updates", state.updates);
  ports.set_slot("amp/skipped", state.skipped);
}

}  // namespace

StepOutputs Step::forward(program::ParameterBinding& ports, const StepInputs& inputs,
                          bool training) const {
  std::optional<autograd::Autocast> autocast;
  std::optional<InterpreterScope> casting;
  if (d_.mixed)
    casting.emplace(
        autocast.emplace(d_.mixed->cast, [&](const Tensor& operand) { ports.note_kept(operand); }));
  lang::EvaluationOptions options;
  options.training = training;
  options.store = &ports;
  const lang::Program& program = *d_.program;
  lang::NamedValues names;
  for (const auto& [name, tensor] : inputs.fields) names.push_back({name, lang::Value(tensor)});
  StepOutputs out;
  if (calls(d_.loss, "update")) {
    out.loss = run_step(d_, inputs.fields, options, names);
  } else {
    for (auto& output : run_model(program, inputs.fields, options)) names.push_back(output);
    const lang::Value loss = lang::run_code(d_.loss, names, options);
    if (!loss.is_tensor())
      throw Error(ErrorCode::kConfig, "loss: expected a tensor, found " + loss.describe(),
                  d_.loss.where.location());
    out.loss = loss.tensor();
  }
  if (out.loss.ndim() != 0)
    throw Error(
        ErrorCode::kConfig,
        str("loss: expected one number, found ", out.loss.type(), "; reduce it with mean or sum"),
        d_.loss.where.location());
  if (!is_float(out.loss.dtype()))
    throw Error(ErrorCode::kConfig, str("loss: expected a floating value, found ", out.loss.type()),
                d_.loss.where.location());
  if (training) return out;
  out.names = names;
  for (const MetricDefinition& metric : d_.metrics)
    for (const MetricCall& call : metric.calls)
      out.metrics.push_back(bind_metric(call, names, options));
  return out;
}

std::vector<std::string> Step::trainable(const program::ParameterBinding& ports) const {
  std::vector<std::string> names;
  for (const std::string& name : ports.used())
    if (!d_.optimizer->is_frozen(name)) names.push_back(name);
  return names;
}

Tensors Step::gradients(program::ParameterBinding& ports, const Tensor& loss,
                        const std::vector<std::string>& names) const {
  Tensors parameters;
  for (const std::string& name : names) parameters.push_back(ports.existing(name));
  const autograd::NoGradScope no_second_order;
  if (!scaling()) return autograd::grad({loss}, parameters, {}, true);
  const Tensor scale = ops::cast(loss_scale(ports), loss.dtype());
  return autograd::grad({loss}, parameters, {scale}, true);
}

void Step::update(program::ParameterBinding& ports, const StepInputs& inputs,
                  const std::vector<std::string>& names, const Tensors& gradients,
                  bool unscaled) const {
  const autograd::NoGradScope no_grad;
  optim::UpdateInputs update{
      .lr = inputs.learning_rate, .step = inputs.step, .bound = d_.clip.value};
  // Gradients are read once for norms, which tell at the same time whether all are finite, and once
  // by the updates, which take factors and bounds along.
  const Tensors squares = optim::sums_of_squares(gradients, d_.clip);
  Tensor unscale;
  if (scaling()) {
    const optim::ScalerState state = scaler_state(ports);
    const Tensor finite = optim::all_finite(squares.empty() ? gradients : squares);
    update.skip = ops::logical_not(finite);
    update.step = state.updates + Tensor::number(int64_t{1});
    if (!unscaled) unscale = 1.0 / state.scale;
    set_scaler_state(ports, optim::next_state(state, finite, *scaling()));
  }
  const Tensors scales = optim::gradient_scales(gradients, squares, d_.clip, unscale);
  for (size_t i = 0; i < names.size(); ++i) {
    if (!gradients[i].defined()) continue;  // has no part in the loss
    const Tensor parameter = ports.existing(names[i]);
    const Dims shape = concrete(parameter.shape());
    Tensors states;
    std::vector<std::string> slots;
    for (const optim::StateSlot& slot : d_.optimizer->slots()) {
      slots.push_back("optimizer/" + names[i] + "/" + slot.name);
      states.push_back(ports.slot(slots.back(), shape, full_type(parameter), slot.initial));
    }
    update.master = ports.master(names[i]);
    update.scale = scales[i];
    const Tensors updated = d_.optimizer->update(names[i], parameter, gradients[i], states, update);
    ports.set_parameter(names[i], updated[0]);
    for (size_t s = 0; s < slots.size(); ++s) ports.set_slot(slots[s], updated[s + 1]);
    if (update.master.defined()) ports.set_master(names[i], updated.back());
  }
}

StepOutputs Step::train(program::ParameterBinding& ports, const StepInputs& inputs) const {
  StepOutputs out = forward(ports, inputs, true);
  const auto names = trainable(ports);
  update(ports, inputs, names, gradients(ports, out.loss, names), false);
  return out;
}

namespace {

std::string sum_slot(const std::string& parameter) { return "gradient/" + parameter; }
std::string touched_slot(const std::string& parameter) { return "touched_rows/" + parameter; }

}  // namespace

void Step::note_touched_rows(program::ParameterBinding& ports, const std::string& name,
                             const RowSparse& rows) const {
  const int64_t count = concrete(ports.existing(name).shape())[0];
  const Tensor touched = ports.slot(touched_slot(name), {count, 1}, DType::kF32, 0);
  const Tensor ones = full_of({rows.indices.dim(0), Dim(1)}, 1, DType::kF32);
  ports.set_slot(touched_slot(name), touched + ops::embedding_grad(rows.indices, ones, Dim(count)));
}

Tensor Step::accumulated(program::ParameterBinding& ports, const std::string& name) const {
  const Tensor parameter = ports.existing(name);
  const Dims shape = concrete(parameter.shape());
  const Tensor sum = ports.slot(sum_slot(name), shape, full_type(parameter), 0);
  if (!ports.store().states.contains(touched_slot(name))) return sum;
  const Tensor touched = ports.slot(touched_slot(name), {shape[0], 1}, DType::kF32, 0);
  const Tensor rows = ops::arange(AttrValue(0), AttrValue(shape[0]));
  const Tensor indices =
      ops::where(ops::greater_than(ops::reshape(touched, {Dim(-1)}), Tensor::number(0.0)), rows,
                 Tensor::number(int64_t{-1}));
  return make_row_sparse(indices, sum, Dim(shape[0]));
}

StepOutputs Step::accumulate(program::ParameterBinding& ports, const StepInputs& inputs) const {
  StepOutputs out = forward(ports, inputs, true);
  const auto names = trainable(ports);
  const Tensors grads = gradients(ports, out.loss, names);
  const autograd::NoGradScope no_grad;
  for (size_t i = 0; i < names.size(); ++i) {
    if (!grads[i].defined()) continue;
    const Tensor parameter = ports.existing(names[i]);
    const std::string slot = sum_slot(names[i]);
    if (const RowSparse* rows = row_sparse(grads[i]); rows && d_.optimizer->is_lazy())
      note_touched_rows(ports, names[i], *rows);
    const DType dtype = full_type(parameter);
    const Tensor sum = ports.slot(slot, concrete(parameter.shape()), dtype, 0);
    Tensor weight = ops::cast(inputs.weight, dtype);
    if (scaling()) weight = weight / loss_scale(ports);
    ports.set_slot(slot, sum + in_full(grads[i]) * weight);
  }
  return out;
}

void Step::apply(program::ParameterBinding& ports, const StepInputs& inputs,
                 const std::vector<std::string>& parameters) const {
  Tensors sums;
  for (const std::string& name : parameters) sums.push_back(accumulated(ports, name));
  update(ports, inputs, parameters, sums, true);
  const auto clear = [&](const std::string& slot) {
    const Array& kept = ports.store().states.at(slot);
    ports.set_slot(slot, full_of(to_shape(kept.shape), 0, kept.dtype));
  };
  for (const std::string& name : parameters) {
    clear(sum_slot(name));
    if (ports.store().states.contains(touched_slot(name))) clear(touched_slot(name));
  }
}

StepOutputs Step::evaluate(program::ParameterBinding& ports, const StepInputs& inputs) const {
  const autograd::NoGradScope no_grad;
  return forward(ports, inputs, false);
}

}  // namespace paddle::train
