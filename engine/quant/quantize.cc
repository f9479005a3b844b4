#include "quant/quantize.h"

#include <algorithm>
#include <cmath>
#include <set>

#include "base/source_location.h"
#include "compiler/passes/passes.h"
#include "ir/replay.h"
#include "ir/tracer.h"
#include "ops/core/call.h"
#include "ops/core/operators.h"
#include "ops/generated/quantization.h"

namespace paddle::quant {
namespace {

bool is_layer_op(const Op& op) {
  static const std::set<std::string_view> names = {"conv2d", "conv3d", "linear", "matmul"};
  return names.contains(op.name());
}

class PassThrough final : public PassingInterpreter {
 public:
  Tensors apply(const OpCall& call) override { return next().apply(call); }
};

std::unique_ptr<ir::Function> cloned(const ir::Function& function) {
  PassThrough same;
  return ir::retraced(function, same);
}

bool attr_is_true(const ir::Operation& operation, const char* name) {
  const int i = operation.op->attr_index(name);
  return i >= 0 && operation.attrs[static_cast<size_t>(i)].as_bool();
}

/// Why a layer cannot be quantized; "" if it can.
std::string obstacle(const ir::Operation& operation) {
  const TensorType& x = operation.operands[0]->type;
  const Array& weight = *operation.operands[1]->constant;
  if (x.dtype != DType::kF32 || weight.dtype != DType::kF32)
    return "it does not compute in float32";
  if (operation.op->name() == "matmul") {
    if (weight.ndim() != 2) return "its weight is not a matrix";
    if (attr_is_true(operation, "transpose_x") || attr_is_true(operation, "transpose_y"))
      return "its operands are transposed";
  }
  const int format = operation.op->attr_index("data_format");
  if (format >= 0 && operation.attrs[static_cast<size_t>(format)].as_string().ends_with('C'))
    return "its channels are last";
  if (weight.size() == 0) return "its weight is empty";
  return "";
}

/// Top-level layers, in order.
std::vector<ir::Operation*> layer_operations(const ir::Function& function) {
  std::vector<ir::Operation*> out;
  for (const auto& operation : function.body.operations)
    if (is_layer_op(*operation->op) && operation->operands[1] && operation->operands[1]->constant)
      out.push_back(operation.get());
  return out;
}

/// Outputs are named by position: "layer.0", …
void add_outputs(ir::Function& function, const std::vector<Layer>& layers, bool inputs) {
  const auto operations = layer_operations(function);
  ensure(operations.size() == layers.size(), "quantize: a clone has other layers");
  for (size_t i = 0; i < operations.size(); ++i)
    if (!inputs || layers[i].quantized)
      function.add_output({ir::PortKind::kValue, str("layer.", i)},
                          inputs ? operations[i]->operands[0] : operations[i]->results[0]);
}

/// Scale and zero point of uint8 that hold a range; zero is represented exactly.
struct Affine {
  float scale = 1;
  uint8_t zero = 0;
};
Affine affine_of(Range range) {
  const double low = std::min(0.0, range.low), high = std::max(0.0, range.high);
  Affine out;
  const double scale = (high - low) / 255;
  if (!(scale > 0)) return out;
  out.scale = static_cast<float>(scale);
  out.zero = static_cast<uint8_t>(std::clamp(std::nearbyint(-low / scale), 0.0, 255.0));
  return out;
}

/// A weight as int8 with a scale per output channel, which is the first axis of convolutions and
/// the last one of products.
struct QuantizedWeight {
  Array values, scales;  ///< scales: float32, as many as channels
};
QuantizedWeight quantized_weight(const Array& weight, bool channels_first) {
  const Array w = weight.contiguous();
  const int64_t channels = channels_first ? w.shape.front() : w.shape.back();
  const int64_t rest = w.size() / channels;
  QuantizedWeight out{Array::empty(DType::kI8, w.shape), Array::empty(DType::kF32, {channels})};
  const float* const from = w.data<float>();
  int8_t* const to = out.values.data<int8_t>();
  for (int64_t c = 0; c < channels; ++c) {
    const auto at = [&](int64_t i) { return channels_first ? c * rest + i : i * channels + c; };
    float largest = 0;
    for (int64_t i = 0; i < rest; ++i) largest = std::max(largest, std::abs(from[at(i)]));
    const float scale = largest > 0 ? largest / 127 : 1;
    out.scales.data<float>()[c] = scale;
    for (int64_t i = 0; i < rest; ++i)
      to[at(i)] =
          static_cast<int8_t>(std::clamp(std::nearbyint(from[at(i)] / scale), -127.f, 127.f));
  }
  return out;
}

/// Puts quantize/dequantize pairs around the layers of a trace.
class Quantizer final : public PassingInterpreter {
 public:
  Quantizer(const std::vector<Layer>& layers, bool layer_results)
      : layers_(layers), layer_results_(layer_results) {}

  Tensors apply(const OpCall& call) override {
    const bool is_layer = depth_ == 0 && is_layer_op(call.op) && call.operands[1].is_concrete();
    if (!is_layer) return next().apply(call);
    const Layer& layer = layers_.at(next_layer_++);
    Tensors results = layer.quantized ? quantized(call, layer) : next().apply(call);
    if (layer_results_)
      dynamic_cast<ir::Tracer&>(next()).output(
          {ir::PortKind::kValue, str("layer.", next_layer_ - 1)}, results[0]);
    return results;
  }
  // Layers of control flow stay float.
  Tensors branch(const Tensor& condition, const TensorFn& then_fn,
                 const TensorFn& else_fn) override {
    const Depth inside(depth_);
    return PassingInterpreter::branch(condition, then_fn, else_fn);
  }
  Tensors loop(const TensorFn& condition, const TensorFn& body, const Tensors& carried,
               int64_t max_steps) override {
    const Depth inside(depth_);
    return PassingInterpreter::loop(condition, body, carried, max_steps);
  }

  std::map<std::string, Array> take_weights() { return std::move(weights_); }

 private:
  struct Depth {
    explicit Depth(int& depth) : depth_(depth) { ++depth_; }
    ~Depth() { --depth_; }
    int& depth_;
  };

  Tensor parameter(const std::string& name, const Array& value) {
    weights_[name] = value;
    return dynamic_cast<ir::Tracer&>(next()).input({ir::PortKind::kParameter, name},
                                                   {value.dtype, to_shape(value.shape)});
  }

  Tensors quantized(const OpCall& call, const Layer& layer) {
    const BelowScope below(next());
    const Affine affine = affine_of(layer.input);
    const Tensor scale(Array::scalar(affine.scale)), zero(Array::scalar(affine.zero));
    Tensors operands = call.operands;
    operands[0] = ops::dequantize(ops::quantize(operands[0], scale, zero, DType::kU8), scale, zero);
    const bool is_conv = call.op.name().starts_with("conv");
    const Array& weight = call.operands[1].array();
    const QuantizedWeight q = quantized_weight(weight, is_conv);
    const int64_t channels = q.scales.shape[0];
    // Scales broadcast against the weight.
    Dims along(weight.shape.size(), 1);
    (is_conv ? along.front() : along.back()) = channels;
    const float* const first = q.scales.data<float>();
    const Array scales = Array::from<float>({first, first + channels}, along);
    operands[1] = ops::dequantize(parameter(layer.name + ".weight", q.values), Tensor(scales),
                                  Tensor(Array::scalar(int8_t{0})));
    if (operands.size() > 2 && operands[2].defined() && operands[2].is_concrete() &&
        operands[2].array().shape == Dims{channels})
      operands[2] = bias(layer, operands[2].array(), affine.scale, q.scales);
    return next().apply({call.op, operands, call.attrs, call.results, call.constraints});
  }

  /// The bias in the units of the int32 sums.
  Tensor bias(const Layer& layer, const Array& given, float input_scale, const Array& scales) {
    const Array values = given.contiguous();
    const int64_t channels = values.size();
    Array sums = Array::empty(DType::kI32, {channels}),
          units = Array::empty(DType::kF32, {channels});
    for (int64_t c = 0; c < channels; ++c) {
      const float unit = input_scale * scales.data<float>()[c];
      units.data<float>()[c] = unit;
      const double steps = std::nearbyint(static_cast<double>(values.data<float>()[c]) / unit);
      // A channel of tiny weights: its bias does not fit, so the layer keeps a float bias.
      if (!(std::abs(steps) < 2147483000.0)) return Tensor(given);
      sums.data<int32_t>()[c] = static_cast<int32_t>(steps);
    }
    return ops::dequantize(parameter(layer.name + ".bias", sums), Tensor(units),
                           Tensor(Array::scalar(int32_t{0})));
  }

  const std::vector<Layer>& layers_;
  bool layer_results_;
  size_t next_layer_ = 0;
  int depth_ = 0;
  std::map<std::string, Array> weights_;
};

}  // namespace

Quantizable::Quantizable(const ir::Function& function,
                         const std::function<Array(const std::string&)>& weight)
    : function_(cloned(function)) {
  ir::Function& f = *function_;
  std::map<const void*, std::string> names;
  for (size_t i = f.inputs.size(); i-- > 0;) {
    const ir::Port port = f.inputs[i];
    if (port.kind != ir::PortKind::kParameter && port.kind != ir::PortKind::kState) continue;
    const bool changes = std::any_of(f.outputs.begin(), f.outputs.end(), [&](const ir::Port& out) {
      return out.kind == port.kind && out.name == port.name;
    });
    if (changes) continue;
    const Array value = weight(port.name).contiguous();
    names[value.raw()] = port.name;
    f.bind_input(i, value);
  }
  // Names of weights that folding replaces are those of the convolutions before it.
  std::vector<std::string> before;
  const auto name_of = [&](const ir::Operation& operation) {
    const auto found = names.find(operation.operands[1]->constant->raw());
    if (found == names.end()) return std::string();
    const std::string& name = found->second;
    return name.ends_with(".weight") ? name.substr(0, name.size() - 7) : name;
  };
  for (const ir::Operation* each : layer_operations(f)) before.push_back(name_of(*each));
  passes::canonicalize(f);
  passes::fold_batch_norm(f);
  passes::remove_dead_code(f);
  const auto operations = layer_operations(f);
  std::set<std::string> used;
  for (size_t i = 0; i < operations.size(); ++i) {
    Layer layer;
    layer.op = std::string(operations[i]->op->name());
    layer.location = parse_origin(operations[i]->location).place;
    layer.name = operations.size() == before.size() ? before[i] : name_of(*operations[i]);
    if (layer.name.empty()) layer.name = str(layer.op, "_", i);
    // Shared weights are quantized once a use.
    for (int n = 1; !used.insert(layer.name).second; ++n) layer.name += str("_", n);
    layer.why = obstacle(*operations[i]);
    layer.quantized = layer.why.empty();
    layers_.push_back(layer);
  }
}

std::shared_ptr<ir::Function> Quantizable::with_layer_inputs() const {
  std::shared_ptr<ir::Function> out = cloned(*function_);
  add_outputs(*out, layers_, true);
  return out;
}

std::shared_ptr<ir::Function> Quantizable::with_layer_results() const {
  std::shared_ptr<ir::Function> out = cloned(*function_);
  add_outputs(*out, layers_, false);
  return out;
}

QuantizedFunction quantize(const Quantizable& model, bool layer_results) {
  Quantizer quantizer(model.layers(), layer_results);
  QuantizedFunction out;
  out.function = ir::retraced(model.function(), quantizer);
  if (layer_results) {
    // Outputs of layers were added while tracing, before the function's own ones.
    ir::Function& f = *out.function;
    const auto own = static_cast<ptrdiff_t>(model.outputs());
    std::rotate(f.outputs.begin(), f.outputs.end() - own, f.outputs.end());
    std::rotate(f.body.results.begin(), f.body.results.end() - own, f.body.results.end());
  }
  out.weights = quantizer.take_weights();
  return out;
}

}  // namespace paddle::quant
