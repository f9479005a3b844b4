#include "lang/eval/evaluator.h"

#include <algorithm>

#include "autograd/autograd.h"
#include "lang/eval/derivatives.h"
#include "lang/eval/distributions.h"
#include "lang/eval/evaluation.h"

namespace paddle::lang {
namespace {

/// Code that stands for nothing: parameters of a program are evaluated without a store.
class NoParameters final : public ParameterProvider {
 public:
  Tensor parameter(const std::string& path, const Dims&, DType, const Initializer&) override {
    fail(ErrorCode::kConfig, "a parameter ('", path, "') cannot be made here");
  }
  Tensor state(const std::string& path, const Dims&, DType, const Initializer&,
               StateScope) override {
    fail(ErrorCode::kConfig, "a state ('", path, "') cannot be made here");
  }
  void update(const std::string&, const Tensor&) override {}
};

/// The declared shape; dims are what `lookup` makes of their names.
Shape declared_shape(Evaluation& evaluation, const Input& input) {
  static const Code kNoCode;
  Frame frame = evaluation.make_frame(kNoCode, evaluation.program()->file);
  Shape shape;
  for (const ExprPtr& entry : input.shape) {
    const Value value = evaluation.evaluate(*entry, frame);
    if (const auto* dim = value.get<Dim>()) {
      shape.push_back(*dim);
    } else if (value.is_integer() && !value.is<bool>()) {
      if (value.integer() < 0) {
        evaluation.reject(entry->where, str("a size of ", value.integer(), " in the shape of '",
                                            input.name.text, "'"));
      }
      shape.emplace_back(value.integer());
    } else {
      evaluation.reject(entry->where, str("a size must be an integer, found ", value.describe()));
    }
  }
  return shape;
}

bool is_free_name(const Program& program, const Expr& entry) {
  return entry.kind == ExprKind::kName && !program.find_param(entry.text);
}

/// Gives each dim that stands by itself the size that the input has, and checks the rest.
void bind_inputs(Evaluation& evaluation, const Program& program, const EntryPoint& entry,
                 const Tensors& inputs) {
  const auto reject = [&](const Input& input, const std::string& message) {
    throw Error(ErrorCode::kData, str("input '", input.name.text, "': ", message));
  };
  for (size_t i = 0; i < inputs.size(); ++i) {
    const Input& input = entry.inputs[i];
    const TensorType& type = inputs[i].type();
    if (type.shape.size() != input.shape.size()) {
      reject(input, str("expected ", input.shape.size(), " axes, found ", type));
    }
    // A run in float64 widens every float32.
    const bool widened = input.dtype == DType::kF32 && type.dtype == DType::kF64;
    if (type.dtype != input.dtype && !widened)
      reject(input, str("expected ", text(input.dtype), ", found ", type));
    for (size_t axis = 0; axis < type.shape.size(); ++axis) {
      const Expr& size = *input.shape[axis];
      if (is_free_name(program, size) && !evaluation.bound_dim(size.text)) {
        evaluation.bind_dim(size.text, type.shape[axis]);
      }
    }
  }
  for (size_t i = 0; i < inputs.size(); ++i) {
    const Input& input = entry.inputs[i];
    const Shape declared = declared_shape(evaluation, input);
    for (size_t axis = 0; axis < declared.size(); ++axis) {
      const Dim& size = inputs[i].shape()[axis];
      if (!declared[axis].equals(size).value_or(true)) {
        reject(
            input,
            str("axis ", axis, " has size ", size, ", but the model says ", declared[axis],
                is_free_name(program, *input.shape[axis]) ? " ('" + input.shape[axis]->text + "')"
                                                          : ""));
      }
    }
  }
}

/// The position of the input that input i is the mask of: NAME_mask, bool [batch, steps], is that
/// of NAME, [batch, steps, …].
std::optional<size_t> masked_input(const EntryPoint& entry, const Tensors& inputs, size_t i) {
  constexpr std::string_view kSuffix = "_mask";
  const std::string& name = entry.inputs[i].name.text;
  if (!name.ends_with(kSuffix) || !is_bool(inputs[i].dtype()) || inputs[i].ndim() != 2)
    return std::nullopt;
  for (size_t k = 0; k < inputs.size(); ++k)
    if (entry.inputs[k].name.text == name.substr(0, name.size() - kSuffix.size()) &&
        inputs[k].ndim() >= 2 && inputs[k].dim(1).same(inputs[i].dim(1)))
      return k;
  return std::nullopt;
}

/// Outputs of a body or chain by the declared names.
std::vector<NamedTensor> collect_outputs(Evaluation& evaluation, const EntryPoint& entry,
                                         const Value& result, Frame& frame) {
  const SourcePosition& where = entry.code.where;
  std::vector<NamedTensor> out;
  const auto add = [&](const std::string& name, const Value& value, const SourcePosition& at) {
    if (!value.is_tensor() && !value.is_number() && !value.is_dim()) {
      evaluation.reject(at,
                        str("the output '", name, "' must be a tensor, found ", value.describe()));
    }
    Tensor tensor = evaluation.operations().to_tensor(value, at, "output");
    if (tensor.type().weak) {
      const DType dtype = tensor.dtype() == DType::kF64 ? DType::kF32 : tensor.dtype();
      tensor = evaluation.operations().op("cast", {tensor, Value(text(dtype))}, at).tensor();
    }
    out.push_back({name, tensor});
  };
  if (entry.outputs.empty()) {
    if (result.is_none()) {
      evaluation.reject(where,
                        "the model returns nothing: 'return' a value, or name its 'outputs'");
    }
    if (result.items()) {
      evaluation.reject(
          where, str("the model returns ", result.describe(), ": 'outputs' must name the values"));
    }
    add("output", result, where);
    return out;
  }
  if (!entry.code.is_chain && !result.is_none()) {
    const ValueList single{result};
    const bool several = result.is<Value::Tuple>() || (result.items() && entry.outputs.size() > 1);
    const ValueList& values = several ? *result.items() : single;
    if (values.size() != entry.outputs.size()) {
      evaluation.reject(where, str("the model returns ", values.size(), " values, 'outputs' names ",
                                   entry.outputs.size()));
    }
    for (size_t i = 0; i < values.size(); ++i)
      add(entry.outputs[i].text, values[i], entry.outputs[i].where);
    return out;
  }
  // The last name that nothing carries is the chain's last value.
  std::string last;
  for (const Name& name : entry.outputs) {
    if (!frame.locals.count(name.text)) last = name.text;
  }
  for (const Name& name : entry.outputs) {
    const auto found = frame.locals.find(name.text);
    if (found != frame.locals.end()) {
      add(name.text, found->second, name.where);
    } else if (entry.code.is_chain && name.text == last) {
      add(name.text, result, name.where);
    } else {
      const auto reason = frame.unavailable.find(name.text);
      std::vector<std::string> assigned;
      for (const auto& [local, value] : frame.locals) assigned.push_back(local);
      evaluation.reject(name.where, reason != frame.unavailable.end()
                                        ? reason->second
                                        : str("the model never assigns its output '", name.text,
                                              "'", did_you_mean(name.text, assigned)));
    }
  }
  return out;
}

KnownNames known_names(const EvaluationOptions& options) {
  KnownNames known;
  known.operations = [&options] {
    std::vector<std::string> names = op_names();
    for (const auto& [name, function] : options.functions) names.push_back(name);
    for (std::string& word : distribution_words()) names.push_back(std::move(word));
    for (std::string& word : derivative_words()) names.push_back(std::move(word));
    return names;
  };
  known.is_operation = [&options](const std::string& name) {
    return find_op(name) != nullptr || options.functions.count(name) > 0 ||
           is_distribution_word(name) || is_derivative_word(name);
  };
  return known;
}

}  // namespace

std::vector<std::pair<std::string, TensorType>> input_types(const Program& program,
                                                            const EntryPoint& entry) {
  NoParameters store;
  EvaluationOptions options;
  options.store = &store;
  Evaluation evaluation(&program, options);
  for (const std::string& name : program.dims) evaluation.bind_dim(name, Dim::symbol(name, 1));
  std::vector<std::pair<std::string, TensorType>> out;
  for (const Input& input : entry.inputs) {
    TensorType type;
    type.dtype = input.dtype;
    type.shape = declared_shape(evaluation, input);
    out.emplace_back(input.name.text, std::move(type));
  }
  return out;
}

std::vector<std::string> output_names(const EntryPoint& entry) {
  std::vector<std::string> names;
  for (const Name& name : entry.outputs) names.push_back(name.text);
  if (names.empty()) names.emplace_back("output");
  return names;
}

std::vector<NamedTensor> run_entry(const Program& program, const EntryPoint& entry,
                                   const Tensors& inputs, const EvaluationOptions& options) {
  if (inputs.size() != entry.inputs.size()) {
    fail(ErrorCode::kData, "the model takes ", entry.inputs.size(), " inputs, found ",
         inputs.size());
  }
  Evaluation evaluation(&program, options);
  bind_inputs(evaluation, program, entry, inputs);
  if (entry.external) {
    std::vector<NamedTensor> out;
    const Tensors results =
        entry.external->run(inputs, *options.store, options.training, options.observer);
    for (size_t i = 0; i < results.size(); ++i) out.push_back({entry.outputs[i].text, results[i]});
    return out;
  }
  Frame frame = evaluation.make_frame(entry.code, program.file);
  // In eager mode the tape records what is computed from variables; a trace records everything.
  const bool derives = !current_interpreter().traces() && differentiates(program);
  for (size_t i = 0; i < inputs.size(); ++i) {
    const Tensor& input = inputs[i];
    const bool is_new = derives && is_differentiable(input.dtype()) && !input.requires_grad();
    // A cell of its own: writes into an input do not change the caller's value.
    frame.locals[entry.inputs[i].name.text] =
        (is_new ? autograd::variable(input) : input).fresh_cell();
  }
  std::vector<size_t> values;  // inputs other than masks
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (masked_input(entry, inputs, i))
      evaluation.add_padding_mask(inputs[i]);
    else
      values.push_back(i);
  }
  Value result;
  if (entry.code.is_chain) {
    const Value first =
        values.size() == 1 ? frame.locals[entry.inputs[values[0]].name.text] : Value();
    result = evaluation.run_chain(entry.code, first, frame);
  } else {
    result = evaluation.statements().run_body(entry.code.statements, frame);
  }
  return collect_outputs(evaluation, entry, result, frame);
}

Value run_code(const Code& code, const NamedValues& names, const EvaluationOptions& options,
               std::map<std::string, Value>* assigned) {
  Evaluation evaluation(nullptr, options);
  Frame frame = evaluation.make_frame(code, "");
  for (const auto& [name, value] : names) {
    frame.locals[name] = value;
    if (const auto* reference = value.get<Callable>())
      frame.references[name].insert(reference->name);
  }
  Value result;
  if (code.is_chain) {
    result = evaluation.run_chain(code, names.size() == 1 ? names[0].second : Value(), frame);
  } else if (code.statements.size() == 1 && code.statements[0].kind == StmtKind::kExpression) {
    result = evaluation.evaluate(*code.statements[0].value, frame);
  } else {
    result = evaluation.statements().run_body(code.statements, frame);
  }
  if (assigned) {
    for (const std::string& name : *frame.bound) {
      const auto found = frame.locals.find(name);
      if (found != frame.locals.end()) (*assigned)[name] = found->second;
    }
  }
  return result;
}

void check_program(const Program& program, const EvaluationOptions& options) {
  Diagnostics diagnostics;
  check_names(program, known_names(options), diagnostics);
  diagnostics.raise();
}

}  // namespace paddle::lang
