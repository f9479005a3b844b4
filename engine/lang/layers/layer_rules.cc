// Which parameters each layer has, by PaddlePaddle's layer classes: names are the operation's
// operands; weights start xavier_uniform, scales at one, biases at zero.
#include <map>

#include "lang/layers/layer_call.h"

namespace paddle::lang {
namespace {

const Initializer kXavier{Initializer::Kind::kXavierUniform, 0, 0, {}};
const Initializer kZeros = Initializer::constant(0);
const Initializer kOnes = Initializer::constant(1);

std::string format_of(const LayerCall& call) {
  const Value* value = call.find("data_format");
  const auto* text = value ? value->get<std::string>() : nullptr;
  return text ? *text : "NCHW";
}

/// Size of the channel axis of x; the axis is 1, or the last where the format ends in C.
int64_t channels(LayerCall& call) {
  const Tensor x = call.x();
  const std::string format = format_of(call);
  const bool last = format.size() > 1 && format.back() == 'C';
  if (x.ndim() < 2) {
    fail(ErrorCode::kConfig, call.op.name(), ": x must have at least 2 axes, not ", x.type());
  }
  return call.known(x.dim(last ? -1 : 1), "the channel axis of x");
}

/// The bias of a layer whose results have `size` channels.
void make_bias(LayerCall& call, int64_t size) {
  if (call.wants("bias", !call.weight_given)) call.make("bias", {size}, kZeros, "bias_init");
}

std::optional<Value> linear(LayerCall& call) {
  if (!call.weight_given) {
    const Tensor x = call.x();
    if (x.ndim() < 1)
      fail(ErrorCode::kConfig, "linear: x must have at least 1 axis, not ", x.type());
    const int64_t in = call.known(x.dim(-1), "the last axis of x");
    const int64_t out = call.size("out_features");
    call.make("weight", {in, out}, kXavier, "weight_init");
  }
  const Tensor weight = call.tensor("weight");
  if (weight.ndim() == 2) make_bias(call, call.known(weight.dim(1), "the weight's last axis"));
  return std::nullopt;
}

/// Pads x as `padding_mode` says and leaves no padding to the convolution.
void pad_first(LayerCall& call, size_t axes) {
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
  call.values["x"] =
      call.evaluation.op("pad", {call.x(), Value::list(std::move(sizes))}, call.site.where,
                         {{"mode", Value(*text)},
                          {"data_format", Value(format_of(call))},
                          {"pad_from_left_axis", Value(false)}});
  call.values["padding"] = Value(int64_t{0});
}

LayerRule convolution(size_t axes, bool transposed) {
  return [axes, transposed](LayerCall& call) -> std::optional<Value> {
    if (!transposed) pad_first(call, axes);
    if (!call.weight_given) {
      const int64_t in = channels(call);
      const int64_t out = call.size("out_channels");
      const int64_t groups = call.find("groups") ? call.size("groups") : 1;
      if (in % groups != 0 || out % groups != 0) {
        fail(ErrorCode::kConfig, call.op.name(), ": ", in, " channels of x and ", out,
             " out_channels do not both divide into ", groups, " groups");
      }
      Dims shape = transposed ? Dims{in, out / groups} : Dims{out, in / groups};
      const Dims window = call.window("kernel_size", axes);
      shape.insert(shape.end(), window.begin(), window.end());
      call.make("weight", shape, kXavier, "weight_init");
      make_bias(call, out);
    } else if (call.wants("bias", false)) {
      const Tensor weight = call.tensor("weight");
      const int64_t groups = call.find("groups") ? call.size("groups") : 1;
      make_bias(call, transposed ? call.known(weight.dim(1), "the weight's axis") * groups
                                 : call.known(weight.dim(0), "the weight's first axis"));
    }
    return std::nullopt;
  };
}

/// weight and bias over the same shape, for normalisation.
void make_affine(LayerCall& call, const Dims& shape, const char* weight = "weight") {
  const bool given = call.find(weight) && call.find(weight)->is_tensor();
  if (!given && call.wants(weight, true))
    call.make(weight, shape, kOnes, std::string(weight) + "_init");
  if (call.op.operand_index("bias") < 0) return;
  if (call.wants("bias", !given)) call.make("bias", shape, kZeros, "bias_init");
}

/// Where the layer's name of a parameter differs from the operation's.
void rename(LayerCall& call, const char* layer_name, const char* op_name) {
  const auto takes = [&](const char* name) {
    return call.op.operand_index(name) >= 0 || call.op.attr_index(name) >= 0;
  };
  if (takes(layer_name) || !takes(op_name)) return;
  const auto it = call.values.find(layer_name);
  if (it == call.values.end()) return;
  call.values[op_name] = it->second;
  call.values.erase(layer_name);
}

/// Whether training leaves a layer alone: its statistics are frozen by name, or with all of its
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

std::optional<Value> batch_norm(LayerCall& call) {
  const int64_t size = channels(call);
  make_affine(call, {size});
  const bool own = !call.find("running_mean") && !call.find("running_var");
  std::string mean, variance;
  if (own) {
    mean = call.make_state("running_mean", {size}, 0);
    variance = call.make_state("running_var", {size}, 1);
    if (is_frozen(call, mean)) call.values["use_global_stats"] = Value(true);
  }
  Tensors all;
  const Value result = call.run(&all);
  const Value* global = call.find("use_global_stats");
  const Value* training = call.find("training");
  const bool learns = training && truth(*training) && !(global && truth(*global));
  if (own && learns && call.evaluation.options().training) {
    // Results: out, new mean, new variance.
    call.evaluation.update_state(mean, all.at(1), call.site.where);
    call.evaluation.update_state(variance, all.at(2), call.site.where);
  }
  return result;
}

/// layer_norm and rms_norm: over the last axes, the last one by default.
std::optional<Value> last_axes_norm(LayerCall& call) {
  const Tensor x = call.x();
  Dims shape;
  if (const Value* given = call.find("normalized_shape")) {
    const ValueList single{*given};
    const ValueList& items = given->items() ? *given->items() : single;
    for (const Value& item : items) {
      if (item.is_dim()) call.known(*item.get<Dim>(), "normalized_shape");
      if (!item.is_integer() || item.integer() < 1) {
        fail(ErrorCode::kConfig, call.op.name(), ": normalized_shape: expected sizes, found ",
             item.describe());
      }
      shape.push_back(item.integer());
    }
  } else {
    if (x.ndim() < 1)
      fail(ErrorCode::kConfig, call.op.name(), ": x must have at least 1 axis, not ", x.type());
    shape = {call.known(x.dim(-1), "the last axis of x")};
  }
  if (call.op.attr_index("normalized_shape") >= 0) {
    ValueList sizes;
    for (const int64_t size : shape) sizes.emplace_back(size);
    call.values["normalized_shape"] = Value::list(std::move(sizes));
  }
  make_affine(call, shape);
  rename(call, "x", "input");
  rename(call, "epsilon", "eps");
  return std::nullopt;
}

std::optional<Value> channel_norm(LayerCall& call) {
  make_affine(call, {channels(call)});
  rename(call, "epsilon", "eps");
  return std::nullopt;
}

std::optional<Value> embedding(LayerCall& call) {
  if (!call.weight_given) {
    const int64_t rows = call.size("num_embeddings"), width = call.size("embedding_dim");
    call.make("weight", {rows, width}, kXavier, "weight_init");
  }
  return std::nullopt;
}

std::optional<Value> prelu(LayerCall& call) {
  if (!call.weight_given) {
    const Value* start = call.find("init");
    const Initializer init =
        Initializer::constant(start && start->is_number() ? start->number() : 0.25);
    call.make("weight", {call.find("num_parameters") ? call.size("num_parameters") : 1}, init,
              "weight_init");
  }
  return std::nullopt;
}

std::optional<Value> bilinear(LayerCall& call) {
  if (!call.weight_given) {
    const int64_t in1 = call.known(call.tensor("x1").dim(-1), "the last axis of x1");
    const int64_t in2 = call.known(call.tensor("x2").dim(-1), "the last axis of x2");
    const int64_t out = call.size("out_features");
    call.make("weight", {out, in1, in2}, kXavier, "weight_init");
    make_bias(call, out);
  }
  return std::nullopt;
}

/// The operand that is a list of tensors.
std::string list_operand(const Op& op) {
  for (const OperandDef& operand : op.operands()) {
    if (operand.kind == OperandKind::kList) return operand.name;
  }
  fail(ErrorCode::kInternal, op.name(), ": no operand takes the weights");
}

/// Recurrent layers: `gates` blocks of rows per weight. The operation takes the weights as its list
/// operand, for each layer and direction w_ih, w_hh, b_ih, b_hh.
LayerRule recurrent(int64_t gates) {
  return [gates](LayerCall& call) -> std::optional<Value> {
    const Tensor x = call.x();
    if (x.ndim() != 3)
      fail(ErrorCode::kConfig, call.op.name(), ": x must have 3 axes, not ", x.type());
    const int64_t hidden = call.size("hidden_size");
    const int64_t layers = call.find("num_layers") ? call.size("num_layers") : 1;
    const Value* direction = call.find("direction");
    const auto* word = direction ? direction->get<std::string>() : nullptr;
    const bool both = word && (*word == "bidirect" || *word == "bidirectional");
    int64_t in = call.known(x.dim(-1), "the last axis of x");
    const std::string list = list_operand(call.op);
    if (!call.find(list)) {
      ValueList weights;
      for (int64_t layer = 0; layer < layers; ++layer) {
        for (int side = 0; side < (both ? 2 : 1); ++side) {
          const std::string tail = str("_l", layer, side ? "_reverse" : "");
          const auto add = [&](const std::string& kind, const Dims& shape, bool weight) {
            call.make(kind + tail, shape, weight ? kXavier : kZeros,
                      weight ? "weight_init" : "bias_init");
            weights.push_back(call.values.at(kind + tail));
            call.values.erase(kind + tail);
          };
          add("weight_ih", {gates * hidden, in}, true);
          add("weight_hh", {gates * hidden, hidden}, true);
          if (call.wants("bias", true)) {
            add("bias_ih", {gates * hidden}, false);
            add("bias_hh", {gates * hidden}, false);
          }
        }
        in = hidden * (both ? 2 : 1);
      }
      call.values[list] = Value::list(std::move(weights));
    }
    call.values.erase("bias");
    const Value result = call.run();
    // An LSTM's two final states stand together: y, (h, c).
    const ValueList* items = result.items();
    if (items && items->size() == 3) {
      return Value::tuple({(*items)[0], Value::tuple({(*items)[1], (*items)[2]})});
    }
    return result;
  };
}

const std::map<std::string, LayerRule, std::less<>>& rules() {
  static const std::map<std::string, LayerRule, std::less<>> table = {
      {"linear", linear},
      {"conv1d", convolution(1, false)},
      {"conv2d", convolution(2, false)},
      {"conv3d", convolution(3, false)},
      {"conv1d_transpose", convolution(1, true)},
      {"conv2d_transpose", convolution(2, true)},
      {"conv3d_transpose", convolution(3, true)},
      {"batch_norm", batch_norm},
      {"layer_norm", last_axes_norm},
      {"rms_norm", last_axes_norm},
      {"group_norm", channel_norm},
      {"instance_norm", channel_norm},
      {"embedding", embedding},
      {"prelu", prelu},
      {"bilinear", bilinear},
      {"lstm", recurrent(4)},
      {"gru", recurrent(3)},
      {"simple_rnn", recurrent(1)},
  };
  return table;
}

}  // namespace

const LayerRule* layer_rule(std::string_view op) {
  const auto found = rules().find(op);
  return found == rules().end() ? nullptr : &found->second;
}

}  // namespace paddle::lang
