#include "train/step/step_body.h"

#include <algorithm>

#include "autograd/autograd.h"
#include "ops/core/operators.h"
#include "ops/generated/math.h"
#include "program/scoped_parameters.h"
#include "tensor/region_depth.h"
#include "train/step/step.h"
#include "train/step/step_minimize.h"

namespace paddle::train {

bool calls(const lang::Code& code, std::string_view callee) {
  return std::any_of(code.sites.begin(), code.sites.end(),
                     [&](const lang::CallSite& site) { return site.callee == callee; });
}

std::map<std::string, Tensor> variables(std::map<std::string, Tensor> fields) {
  for (auto& [name, tensor] : fields)
    if (is_differentiable(tensor.dtype())) tensor = autograd::variable(tensor);
  return fields;
}

lang::NamedValues run_model(const lang::Program& program,
                            const std::map<std::string, Tensor>& inputs,
                            const lang::EvaluationOptions& options) {
  Tensors operands;
  for (const lang::Input& input : program.model.inputs) {
    const Tensor& operand = inputs.at(input.name.text);
    // Under mixed precision a step may have computed the input in 16 bits.
    const bool narrowed =
        input.dtype == DType::kF32 && is_float(operand.dtype()) && info(operand.dtype()).bits < 32;
    operands.push_back(narrowed ? ops::cast(operand, input.dtype) : operand);
  }
  lang::NamedValues out;
  for (lang::NamedTensor& output : lang::run_entry(program, program.model, operands, options))
    out.push_back({output.name, lang::Value(output.tensor)});
  return out;
}

namespace {

using Fields = std::map<std::string, Tensor>;

/// Passes calls on, only to know in which regions the code runs.
class StepDepth final : public RegionDepth {
 public:
  Tensors apply(const OpCall& call) override {
    const ScopedInterpreter below(next());
    return next().apply(call);
  }
};

/// `model(image)`: a call over the model's parameters. Inputs that are not given are the data's
/// fields of their names.
lang::HostFunction model_function(const program::NamedModel& model, const Fields& fields,
                                  const lang::EvaluationOptions& options) {
  const lang::Program& program = *model.program;
  const std::string& scope = model.name;
  const std::string name = scope.empty() ? "model" : scope;
  return [&, name](std::vector<lang::Value> positional, lang::NamedValues named,
                   const config::SourcePosition&) {
    std::vector<std::string> names;
    for (const lang::Input& input : program.model.inputs) names.push_back(input.name.text);
    if (positional.size() > names.size())
      fail(ErrorCode::kConfig, name, ": at most ", names.size(), " inputs, found ",
           positional.size());
    for (size_t i = 0; i < positional.size(); ++i) named.push_back({names[i], positional[i]});
    Fields inputs = fields;
    for (const auto& [input, value] : named) {
      if (std::find(names.begin(), names.end(), input) == names.end())
        fail(ErrorCode::kConfig, name, ": no input is called '", input, "'",
             did_you_mean(input, names));
      if (!value.is_tensor())
        fail(ErrorCode::kConfig, name, ": the input '", input, "' must be a tensor, found ",
             value.describe());
      inputs[input] = value.tensor();
    }
    for (const std::string& input : names)
      if (!inputs.contains(input))
        fail(ErrorCode::kConfig, name, ": the input '", input,
             "' is not given, and the data has no field of that name");
    program::ScopedParameters parameters(*options.store, scope);
    lang::EvaluationOptions of_model = options;
    of_model.store = &parameters;
    lang::ValueList values;
    for (const auto& [output, value] : run_model(program, inputs, of_model))
      values.push_back(value);
    return values.size() == 1 ? values[0] : lang::Value::tuple(std::move(values));
  };
}

/// The value with every tensor in it detached.
lang::Value detached(const lang::Value& value) {
  if (value.is_tensor()) return value.with_tensor(ops::detach(value.tensor()));
  if (!value.items()) return value;
  lang::ValueList items;
  for (const lang::Value& item : *value.items()) items.push_back(detached(item));
  return value.is<lang::Value::List>() ? lang::Value::list(std::move(items))
                                       : lang::Value::tuple(std::move(items));
}

/// `no_grad(model(x))`: what it computes, as constants to differentiation.
lang::Value no_grad(std::vector<lang::Value> positional, lang::NamedValues named,
                    const config::SourcePosition&) {
  if (positional.size() != 1 || !named.empty() || !lang::holds_tensor(positional[0]))
    fail(ErrorCode::kConfig, "no_grad takes one value, a tensor or several: no_grad(model(x))");
  return detached(positional[0]);
}

std::vector<std::string> patterns_of(const lang::Value& value) {
  const lang::ValueList items = value.items() ? *value.items() : lang::ValueList{value};
  std::vector<std::string> out;
  for (const lang::Value& item : items) {
    if (!item.is<std::string>())
      fail(ErrorCode::kConfig, "update: only= takes a pattern of parameter names or a list, found ",
           value.describe());
    out.push_back(*item.get<std::string>());
  }
  if (out.empty()) fail(ErrorCode::kConfig, "update: only=[] leaves nothing to update");
  return out;
}

/// The optimizer that `optimizer=` names.
size_t find_optimizer(const StepDefinition& definition, const lang::Value* named) {
  std::vector<std::string> names;
  for (const NamedOptimizer& o : definition.optimizers) names.push_back(o.name);
  const bool unnamed = names.size() == 1 && names[0].empty();
  if (!named) {
    if (names.size() == 1) return 0;
    fail(ErrorCode::kConfig, "update: the config has the optimizers ", join(names, ", "),
         "; choose one: update(loss, optimizer=\"", names[0], "\")");
  }
  if (!named->is<std::string>())
    fail(ErrorCode::kConfig, "update: optimizer= takes a name, found ", named->describe());
  const std::string& name = *named->get<std::string>();
  if (unnamed)
    fail(ErrorCode::kConfig, "update: optimizer=\"", name,
         "\" needs 'optimizers:' in the config, which names each");
  const auto found = std::find(names.begin(), names.end(), name);
  if (found == names.end())
    fail(ErrorCode::kConfig, "update: there is no optimizer '", name, "'",
         did_you_mean(name, names), "; the config has ", join(names, ", "));
  return static_cast<size_t>(found - names.begin());
}

UpdateCall read_update(const StepDefinition& definition, const std::vector<lang::Value>& positional,
                       const lang::NamedValues& named) {
  if (positional.size() != 1 || !positional[0].is_tensor())
    fail(ErrorCode::kConfig, "update takes the loss, a tensor");
  UpdateCall call;
  call.loss = positional[0].tensor();
  const lang::Value* optimizer = nullptr;
  for (const auto& [name, value] : named) {
    if (name == "optimizer") {
      optimizer = &value;
    } else if (name == "only") {
      call.only = patterns_of(value);
    } else if (name == "every") {
      if (!value.is<int64_t>() || value.integer() < 1)
        fail(ErrorCode::kConfig, "update: every= takes a number of steps from 1, found ",
             value.describe());
      call.every = value.integer();
    } else {
      const std::vector<std::string> known = {"optimizer", "only", "every"};
      fail(ErrorCode::kConfig, "update: unknown argument '", name, "'", did_you_mean(name, known));
    }
  }
  call.optimizer = find_optimizer(definition, optimizer);
  // An optimizer with the name of a model updates that model.
  const std::string& name = definition.optimizers[call.optimizer].name;
  if (call.only.empty() && !name.empty() &&
      std::any_of(definition.models.begin(), definition.models.end(),
                  [&](const program::NamedModel& model) { return model.name == name; }))
    call.only = {name + ".*"};
  return call;
}

}  // namespace

void run_step_body(const StepDefinition& definition, Fields fields,
                   const lang::EvaluationOptions& options, lang::NamedValues& names,
                   const std::function<void(const UpdateCall&)>& on_update) {
  fields = variables(std::move(fields));
  names.clear();
  for (const auto& [name, tensor] : fields) names.push_back({name, lang::Value(tensor)});
  for (const auto& [name, array] : definition.constants)
    names.push_back({name, lang::Value(Tensor(array))});
  lang::EvaluationOptions inside = options;
  for (const program::NamedModel& model : definition.models) {
    if (model.name.empty() && !calls(definition.loss, "model"))
      for (auto& output : run_model(*model.program, fields, options)) names.push_back(output);
    inside.functions[model.name.empty() ? "model" : model.name] =
        model_function(model, fields, options);
  }
  inside.functions["no_grad"] = no_grad;
  inside.functions["minimize_bfgs"] = minimize_function(false);
  inside.functions["minimize_lbfgs"] = minimize_function(true);
  StepDepth region;
  int64_t updates = 0;
  inside.functions["update"] = [&](std::vector<lang::Value> positional, lang::NamedValues named,
                                   const config::SourcePosition&) {
    const UpdateCall call = read_update(definition, positional, named);
    if (region.depth() > 0)
      fail(ErrorCode::kConfig,
           "update(loss) is not possible inside of a condition or loop on "
           "tensors; every= skips updates by the number of the step");
    if (++updates > 1 && definition.optimizers[call.optimizer].name.empty())
      fail(ErrorCode::kConfig,
           "update(loss) happens once in a step with one optimizer; 'optimizers:' names several");
    on_update(call);
    return positional[0];
  };
  std::map<std::string, lang::Value> assigned;
  {
    const InterpreterScope counting(region);
    lang::run_code(definition.loss, names, inside, &assigned);
  }
  if (updates == 0)
    throw Error(ErrorCode::kConfig, "step: update(loss) was not reached",
                definition.loss.where.location());
  for (const auto& [name, value] : assigned) names.push_back({name, value});
}

}  // namespace paddle::train
