#include "quant/trained.h"

#include <algorithm>
#include <map>
#include <set>

#include "base/source_location.h"
#include "compiler/passes/passes.h"
#include "ir/clone.h"
#include "ir/replay.h"
#include "ir/tracer.h"
#include "ops/core/op.h"
#include "ops/core/operators.h"
#include "quant/function_runner.h"

namespace paddle::quant {
namespace {

using ir::Operation;
using ir::Value;

bool is_op(const Value* value, std::string_view name) {
  return value && value->producer && value->producer->op->name() == name;
}

/// The value before reshapes.
const Value* before_reshape(const Value* value) {
  while (is_op(value, "reshape")) value = value->producer->operands[0];
  return value;
}

/// The parameter that a quantize operation rounds, through reshapes, clamps and signs; its index
/// among the inputs, or -1.
int rounded_parameter(const ir::Function& function, const Value* value) {
  while (value && value->producer) {
    const std::string_view name = value->producer->op->name();
    const bool passes = name == "quantize" || name == "reshape" || name == "minimum" ||
                        name == "maximum" || name == "clip" || name == "multiply";
    if (!passes) return -1;
    value = value->producer->operands[0];
  }
  const auto& arguments = function.body.arguments;
  const auto found = std::find(arguments.begin(), arguments.end(), value);
  if (found == arguments.end()) return -1;
  const auto index = found - arguments.begin();
  return function.inputs[static_cast<size_t>(index)].kind == ir::PortKind::kParameter
             ? static_cast<int>(index)
             : -1;
}

/// For each dequantize of a rounded parameter, in order: the parameter.
std::vector<std::string> rounded_parameters(const ir::Function& function) {
  std::vector<std::string> out;
  for (const auto& operation : function.body.operations) {
    if (operation->op->name() != "dequantize" || !is_op(operation->operands[0], "quantize"))
      continue;
    const int index = rounded_parameter(function, operation->operands[0]);
    if (index >= 0) out.push_back(function.inputs[static_cast<size_t>(index)].name);
  }
  return out;
}

/// Turns the integer constants of dequantize operations into parameters.
class NameIntegers final : public ForwardingInterpreter {
 public:
  explicit NameIntegers(std::vector<std::string> names) : names_(std::move(names)) {}

  Tensors apply(const OpCall& call) override {
    if (call.op.name() != "dequantize" || !call.operands[0].is_concrete() ||
        next_name_ == names_.size())
      return next().apply(call);
    const std::string& parameter = names_[next_name_++];
    Array value = call.operands[0].array().contiguous();
    weights[parameter] = value;
    Tensors operands = call.operands;
    operands[0] = dynamic_cast<ir::Tracer&>(next()).input({ir::PortKind::kParameter, parameter},
                                                          {value.dtype, to_shape(value.shape)});
    const ScopedInterpreter below(next());
    return next().apply({call.op, operands, call.attrs, call.results, call.constraints});
  }

  std::map<std::string, Array> weights;

 private:
  std::vector<std::string> names_;
  size_t next_name_ = 0;
};

/// Gives what was quantized in place of the dequantized value.
class DropPairs final : public ForwardingInterpreter {
 public:
  Tensors apply(const OpCall& call) override {
    if (call.op.name() == "quantize" || call.op.name() == "quantize_dynamic") {
      Tensors results = next().apply(call);
      const Tensor scale = call.op.name() == "quantize" ? call.operands[1] : results[1];
      quantized_.push_back({results[0], call.operands[0], scale});
      return results;
    }
    if (call.op.name() == "dequantize")
      for (const Pair& pair : quantized_) {
        if (!pair.integers.is_same_cell(call.operands[0])) continue;
        const Tensor& scale = call.operands[1];
        if (scale.is_same_cell(pair.scale)) return {pair.x};
        // Scales that took over the factors of a batch norm.
        const ScopedInterpreter below(next());
        return {pair.x * (scale / pair.scale)};
      }
    return next().apply(call);
  }

 private:
  struct Pair {
    Tensor integers, x, scale;
  };
  std::vector<Pair> quantized_;
};

}  // namespace

bool is_trained_with_quantization(const ir::Function& function) {
  return !rounded_parameters(function).empty();
}

QuantizedFunction with_stored_integers(const ir::Function& function,
                                       const std::function<Array(const std::string&)>& weight) {
  std::vector<std::string> names = rounded_parameters(function);
  const std::unique_ptr<ir::Function> bound = ir::clone(function);
  const std::set<std::string> rounded(names.begin(), names.end());
  for (size_t i = bound->inputs.size(); i-- > 0;)
    if (bound->inputs[i].kind == ir::PortKind::kParameter &&
        rounded.contains(bound->inputs[i].name))
      bound->bind_input(i, weight(bound->inputs[i].name).contiguous());
  passes::fold_quantize(*bound, evaluator());
  // A parameter that several layers round has integers for each of them.
  std::map<std::string, int> uses;
  for (std::string& name : names)
    if (const int n = uses[name]++; n > 0) name += str("_", n);
  NameIntegers naming(names);
  QuantizedFunction out;
  out.function = ir::retraced(*bound, naming);
  out.weights = std::move(naming.weights);
  return out;
}

std::shared_ptr<ir::Function> without_quantization(const ir::Function& function) {
  DropPairs drop;
  std::shared_ptr<ir::Function> out = ir::retraced(function, drop);
  passes::remove_dead_code(*out);
  return out;
}

std::vector<Layer> trained_layers(const QuantizedFunction& trained) {
  std::vector<Layer> out;
  const ir::Function& function = *trained.function;
  for (const auto& operation : function.body.operations) {
    if (!is_layer_op(*operation->op) || !operation->operands[1]) continue;
    Layer layer;
    layer.op = std::string(operation->op->name());
    const Origin origin = parse_origin(operation->location);
    layer.location = origin.place;
    const Value* weight = before_reshape(operation->operands[1]);
    layer.quantized = is_op(weight, "dequantize");
    if (layer.quantized) weight = weight->producer->operands[0];
    const auto& arguments = function.body.arguments;
    const auto found = std::find(arguments.begin(), arguments.end(), weight);
    if (found == arguments.end() && !layer.quantized) continue;  // a product of two activations
    layer.name =
        found == arguments.end()
            ? origin.layer
            : layer_name(function.inputs[static_cast<size_t>(found - arguments.begin())].name);
    const Value* x = operation->operands[0];
    layer.format.activations = !is_op(x, "dequantize") ? ActivationMode::kNone
                               : is_op(x->producer->operands[0], "quantize_dynamic")
                                   ? ActivationMode::kDynamic
                                   : ActivationMode::kStatic;
    layer.format.weights.bits = info(weight->type.dtype).bits == 4 ? 4 : 8;
    if (!layer.quantized) layer.why = "trained in floats";
    out.push_back(layer);
  }
  return out;
}

}  // namespace paddle::quant
