// Layers besides the creation of parameters (layer_weights.h) and the call of the operation:
// padding modes, default shapes, running statistics, the weights of recurrent layers.
#include <algorithm>

#include "lang/layers/layer_call.h"
#include "lang/layers/layer_weights.h"
#include "ops/core/call.h"

namespace paddle::lang {
namespace {

/// Pads x as `padding_mode` says and leaves no padding to the convolution.
void pad_first(LayerCall& call) {
  const size_t axes = spatial_axes(call.op);
  const Value* mode = call.find("padding_mode");
  const auto* text = mode ? mode->get<std::string>() : nullptr;
  if (!text || *text == "zeros") return;
  const Value* padding = call.find("padding");
  ValueList sizes;
  const ValueList* items = padding ? padding->items() : nullptr;
  // The last axis comes first in `pad`.
  for (size_t i = 0; i < axes; ++i) {
    const size_t axis = axes - 1 - i;
    const auto side = [&](size_t which) -> Value {
      if (!items) return padding ? *padding : Value(int64_t{0});
      if (items->size() == axes) return (*items)[axis];
      if (items->size() == 2 * axes) return (*items)[2 * axis + which];
      fail(ErrorCode::kConfig, call.op.name(), ": padding_mode '", *text,
           "' needs one padding for each axis");
    };
    for (size_t which : {0u, 1u}) {
      const Value size = side(which);
      if (!size.is_integer()) {
        fail(ErrorCode::kConfig, call.op.name(), ": padding_mode '", *text,
             "' needs numbers as padding, found ", size.describe());
      }
      sizes.push_back(size);
    }
  }
  call.values["x"] = call.evaluation.operations().op(
      "pad", {call.x(), Value::list(std::move(sizes))}, call.site.where,
      {{"mode", Value(*text)},
       {"data_format", Value(data_format(call))},
       {"pad_from_left_axis", Value(false)}});
  call.values["padding"] = Value(int64_t{0});
}

/// Grouped convolutions divide both their input and their output channels.
void check_groups(LayerCall& call) {
  const int64_t in = channel_count(call), out = call.size("out_channels");
  const int64_t groups = call.find("groups") ? call.size("groups") : 1;
  if (in % groups != 0 || out % groups != 0) {
    fail(ErrorCode::kConfig, call.op.name(), ": ", in, " channels of x and ", out,
         " out_channels do not both divide into ", groups, " groups");
  }
}

/// Without `normalized_shape`, the last axis is normalized.
void complete_normalized_shape(LayerCall& call) {
  if (!call.find("normalized_shape")) {
    const Tensor x = call.x();
    if (x.ndim() < 1)
      fail(ErrorCode::kConfig, call.op.name(), ": x must have at least 1 axis, not ", x.type());
    call.values["normalized_shape"] = Value(call.known(x.dim(-1), "the last axis of x"));
  }
  ValueList sizes;
  for (const int64_t size : call.sizes("normalized_shape")) sizes.emplace_back(size);
  call.values["normalized_shape"] = Value::list(std::move(sizes));
}

/// Arguments of the layer under the names that the operation declares.
void rename_arguments(LayerCall& call) {
  std::map<std::string, Value> renamed;
  for (auto& [name, value] : call.values) renamed.emplace(parameter_name(call.op, name), value);
  call.values = std::move(renamed);
}

/// Whether training does not change a layer: its statistics are frozen by name, or with all of its
/// parameters.
bool is_frozen(LayerCall& call, const std::string& statistic) {
  const ParameterProvider* store = call.evaluation.options().store;
  if (!store) return false;
  if (store->is_frozen(statistic)) return true;
  bool any = false;
  for (const char* key : {"weight", "bias"}) {
    if (!call.find(key) || !call.find(key)->is_tensor()) continue;
    any = true;
    if (!store->is_frozen(call.path() + "." + key)) return false;
  }
  return any;
}

/// A layer with states: makes them unless the caller passes one, calls the operation, and assigns
/// the updated states in training.
Value call_with_states(LayerCall& call) {
  bool own = true;
  for (const WeightDef& weight : call.op.weights())
    if (*weight.state && call.find(weight.name)) own = false;
  std::vector<std::pair<std::string, size_t>> states;  // path, index of the result that updates it
  for (const WeightDef& weight : call.op.weights()) {
    if (!*weight.state || !own) continue;
    const auto results = call.op.results();
    const auto updates = [&](const ResultDef& r) {
      return std::string_view(r.name) == weight.state;
    };
    const auto found = std::find_if(results.begin(), results.end(), updates);
    states.emplace_back(call.make_state(weight.name, weight_shape(call, weight),
                                        weight_initializer(call, weight).a),
                        static_cast<size_t>(found - results.begin()));
  }
  if (own && is_frozen(call, states[0].first)) call.values["use_global_stats"] = Value(true);
  Tensors all;
  const Value result = call.run(&all);
  const Value* global = call.find("use_global_stats");
  const Value* training = call.find("training");
  const bool learns = !(training && !truth(*training)) && !(global && truth(*global));
  if (learns && call.evaluation.options().training) {
    for (const auto& [path, index] : states)
      call.evaluation.variables().update_state(path, all.at(index), call.site.where);
  }
  // Results that update the states are not those of the layer.
  const ValueList* items = result.items();
  return own && items && call.op.results().size() == items->size() ? items->front() : result;
}

/// The operand that is a list of tensors.
std::string list_operand(const Op& op) {
  for (const OperandDef& operand : op.operands()) {
    if (operand.kind == OperandKind::kList) return operand.name;
  }
  fail(ErrorCode::kInternal, op.name(), ": no operand takes the weights");
}

/// The mask of the model's input that has as many steps, or an undefined tensor.
Tensor mask_of_steps(LayerCall& call, const Dim& steps) {
  Tensor found;
  for (const Tensor& mask : call.evaluation.padding_masks()) {
    if (!mask.dim(1).same(steps)) continue;
    if (found.defined())
      fail(ErrorCode::kConfig, call.op.name(), ": two inputs with masks have ", steps,
           " steps; say which one with sequence_length");
    found = mask;
  }
  return found;
}

/// A recurrent layer: the operation takes the weights as its list operand, for each layer and
/// direction those of the schema in order. `features` is the size of that layer's input.
Value call_recurrent(LayerCall& call) {
  const Tensor x = call.x();
  if (x.ndim() != 3)
    fail(ErrorCode::kConfig, call.op.name(), ": x must have 3 axes, not ", x.type());
  const int64_t hidden = call.size("hidden_size");
  const int64_t layers = call.find("num_layers") ? call.size("num_layers") : 1;
  const Value* direction = call.find("direction");
  const auto* word = direction ? direction->get<std::string>() : nullptr;
  const bool both = word && (*word == "bidirect" || *word == "bidirectional");
  int64_t features = call.known(x.dim(-1), "the last axis of x");
  const std::string list = list_operand(call.op);
  if (!call.find(list)) {
    ValueList weights;
    for (int64_t layer = 0; layer < layers; ++layer) {
      for (int side = 0; side < (both ? 2 : 1); ++side) {
        for (const WeightDef& weight : call.op.weights()) {
          const bool bias = std::string_view(weight.name).starts_with("bias");
          if (bias && !call.wants("bias", true)) continue;
          const std::string name = str(weight.name, "_l", layer, side ? "_reverse" : "");
          call.make(name, weight_shape(call, weight, {{"features", features}}),
                    weight_initializer(call, weight), bias ? "bias_init" : "weight_init");
          weights.push_back(call.values.at(name));
          call.values.erase(name);
        }
      }
      features = hidden * (both ? 2 : 1);
    }
    call.values[list] = Value::list(std::move(weights));
  }
  call.values.erase("bias");
  if (!call.find("sequence_length")) {
    const Value* time_major = call.find("time_major");
    const bool steps_first = time_major && time_major->is<bool>() && *time_major->get<bool>();
    if (const Tensor mask = mask_of_steps(call, x.dim(steps_first ? 0 : 1)); mask.defined())
      call.values["sequence_length"] = mask;
  }
  const Value result = call.run();
  // An LSTM returns y, (h, c).
  const ValueList* items = result.items();
  if (items && items->size() == 3) {
    return Value::tuple({(*items)[0], Value::tuple({(*items)[1], (*items)[2]})});
  }
  return result;
}

}  // namespace

Value call_with_weights(LayerCall& call) {
  const auto& operands = call.op.operands();
  if (std::any_of(operands.begin(), operands.end(),
                  [](const OperandDef& o) { return o.kind == OperandKind::kList; }))
    return call_recurrent(call);
  if (call.find("padding_mode")) pad_first(call);
  if (call.find("out_channels") && !call.weight_given) check_groups(call);
  if (call.form.has("normalized_shape")) complete_normalized_shape(call);
  make_weights(call);
  rename_arguments(call);
  const auto weights = call.op.weights();
  const bool stateful =
      std::any_of(weights.begin(), weights.end(), [](const WeightDef& w) { return *w.state != 0; });
  if (stateful) return call_with_states(call);
  call.check_required();
  return call.run();
}

}  // namespace paddle::lang
