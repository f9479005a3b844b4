#include "quant/quantize.h"

#include <algorithm>
#include <cmath>

#include "ir/replay.h"
#include "ir/tracer.h"
#include "ops/core/call.h"
#include "ops/core/operators.h"
#include "ops/generated/math.h"
#include "ops/generated/nn.h"
#include "ops/generated/quantization.h"
#include "ops/generated/reduce.h"
#include "ops/generated/sequence.h"
#include "ops/generated/shape.h"
#include "ops/sequence/attention.h"

namespace paddle::quant {
namespace {

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

Tensor dequantized(const Tensor& x, const Affine& affine) {
  return ops::dequantize(x, Tensor(Array::scalar(affine.scale)),
                         Tensor(Array::scalar(affine.zero)));
}
Tensor quantized(const Tensor& x, const Affine& affine) {
  return ops::quantize(x, Tensor(Array::scalar(affine.scale)), Tensor(Array::scalar(affine.zero)),
                       DType::kU8);
}

/// Quantized to these steps and back.
Tensor rounded(const Tensor& x, const Affine& affine) {
  return dequantized(quantized(x, affine), affine);
}

Array integer_array(const std::vector<int8_t>& values, const Dims& shape, int bits) {
  if (bits == 8) return Array::from<int8_t>(values, shape);
  // Two to a byte, the first one in the low half.
  Array out = Array::empty(DType::kI4, shape);
  auto* const bytes = static_cast<uint8_t*>(out.raw());
  for (size_t i = 0; i < values.size(); i += 2) {
    const auto low = static_cast<uint8_t>(values[i] & 15);
    const auto high = i + 1 < values.size() ? static_cast<uint8_t>(values[i + 1] & 15) : uint8_t{0};
    bytes[i / 2] = static_cast<uint8_t>(low | high << 4);
  }
  return out;
}

/// The integers of a weight [channels][features] in the layout of the weight.
Array weight_integers(const QuantizedWeight& weight, const Dims& shape, ChannelAxis channels,
                      int bits) {
  if (channels == ChannelAxis::kFirst) return integer_array(weight.integers, shape, bits);
  const int64_t features = weight.scales.features;
  std::vector<int8_t> values(weight.integers.size());
  for_each_weight(shape, channels, [&](int64_t c, int64_t f, int64_t i) {
    values[static_cast<size_t>(i)] = weight.integers[static_cast<size_t>(c * features + f)];
  });
  return integer_array(values, shape, bits);
}

/// Whether a scale for each row of features can be taken out of a layer's result.
bool has_row_scales(const Layer& layer) {
  return layer.format.activations == ActivationMode::kToken && layer.has_weight &&
         (layer.op == "linear" || layer.op == "matmul");
}

/// Puts quantize/dequantize pairs around the layers of a trace.
class Quantizer final : public ForwardingInterpreter {
 public:
  Quantizer(const std::vector<Layer>& layers, bool products, bool layer_results, Integers integers)
      : layers_(layers), products_(products), layer_results_(layer_results), integers_(integers) {}

  /// Layers of control flow are known by their weights.
  void add_nested(const void* weight, size_t layer) { nested_[weight] = layer; }

  Tensors apply(const OpCall& call) override {
    const auto is_constant = [&](size_t i) {
      return call.operands.size() > i && call.operands[i].defined() &&
             call.operands[i].is_concrete();
    };
    if (depth_ > 0) {
      if (!is_layer(call.op, is_constant(0), is_constant(1), false)) return next().apply(call);
      const auto found = nested_.find(call.operands[weight_operand(call.op)].array().raw());
      const bool quantizes = found != nested_.end() && layers_.at(found->second).quantized;
      return quantizes ? quantize_layer(call, layers_.at(found->second)) : next().apply(call);
    }
    if (call.op.name() == "add") return add(call);
    if (!is_layer(call.op, is_constant(0), is_constant(1), products_)) return next().apply(call);
    const Layer& layer = layers_.at(next_layer_++);
    Tensors results = layer.quantized ? quantize_layer(call, layer) : next().apply(call);
    if (layer_results_)
      tracer().output({ir::PortKind::kValue, str("layer.", next_layer_ - 1)}, results[0]);
    return results;
  }
  Tensors branch(const Tensor& condition, const TensorFn& then_fn,
                 const TensorFn& else_fn) override {
    const Depth inside(depth_);
    return ForwardingInterpreter::branch(condition, then_fn, else_fn);
  }
  Tensors loop(const TensorFn& condition, const TensorFn& body, const Tensors& carried,
               int64_t max_steps) override {
    const Depth inside(depth_);
    return ForwardingInterpreter::loop(condition, body, carried, max_steps);
  }

  std::map<std::string, Array> take_weights() { return std::move(weights_); }

 private:
  struct Depth {
    explicit Depth(int& depth) : depth_(depth) { ++depth_; }
    ~Depth() { --depth_; }
    int& depth_;
  };

  ir::Tracer& tracer() { return dynamic_cast<ir::Tracer&>(next()); }

  Tensor parameter(const std::string& name, const Array& value) {
    // The body of a loop may be traced more than once.
    if (const auto found = parameters_.find(name); found != parameters_.end()) return found->second;
    weights_[name] = value;
    return parameters_[name] = tracer().input({ir::PortKind::kParameter, name},
                                              {value.dtype, to_shape(value.shape)});
  }

  /// The row that is added to a product of matrices is its bias: both are one Gemm in ONNX, which
  /// computes with integers where all of its operands are integers.
  void add_bias_of_product(Tensors& operands) {
    for (const Product& each : products_made_)
      for (size_t i = 0; i < 2; ++i) {
        if (!operands[i].defined() || !each.result.is_same_cell(operands[i]) ||
            !operands[1 - i].defined() || !operands[1 - i].is_concrete())
          continue;
        const Array& row = operands[1 - i].array();
        if (row.dtype != DType::kF32 || row.shape != Dims{static_cast<int64_t>(each.scales.size())})
          continue;
        const ScopedInterpreter below(next());
        operands[1 - i] = bias(*each.layer, row, each.input_scale, each.scales);
        return;
      }
  }

  /// A sum reads the integers that a convolution reads: residual networks then move bytes.
  Tensors add(const OpCall& call) {
    Tensors operands = call.operands;
    add_bias_of_product(operands);
    for (Tensor& operand : operands)
      for (const auto& [x, rounded_x] : images_)
        if (operand.defined() && x.is_same_cell(operand)) operand = rounded_x;
    return next().apply({call.op, operands, call.attrs, call.results, call.constraints});
  }

  Tensor quantized_input(const Layer& layer, size_t input, const Tensor& x) {
    if (layer.format.activations == ActivationMode::kStatic) {
      const Tensor out = rounded(x, affine_of(layer.ranges.at(input)));
      if (layer.op == "conv2d" && depth_ == 0) images_.emplace_back(x, out);
      return out;
    }
    if (layer.format.activations == ActivationMode::kNone) return x;
    const Tensors q = ops::quantize_dynamic(x);
    return ops::dequantize(q[0], q[1], q[2]);
  }

  Tensors quantize_layer(const OpCall& call, const Layer& layer) {
    const ScopedInterpreter below(next());
    Tensors operands = call.operands;
    Tensor row_scales, bias_behind;
    Product sums;
    if (has_row_scales(layer)) {
      // x is divided by the scales of its rows, and the result multiplied by them.
      row_scales = ops::maximum(ops::max(ops::abs(operands[0]), std::vector<int64_t>{-1}, true) *
                                    Tensor(Array::scalar(1.0f / 127)),
                                Tensor(Array::scalar(1e-30f)));
      const Tensor one(Array::scalar(1.0f)), zero(Array::scalar(int8_t{0}));
      operands[0] = ops::dequantize(ops::quantize(operands[0] / row_scales, one, zero, DType::kI8),
                                    one, zero);
      if (operands.size() > 2) std::swap(bias_behind, operands[2]);
    } else {
      const std::vector<size_t> inputs = layer.inputs();
      for (size_t i = 0; i < inputs.size(); ++i)
        operands[inputs[i]] = quantized_input(layer, i, operands[inputs[i]]);
    }
    if (layer.op == "attention") return {quantized_attention(call, operands), Tensor()};
    if (layer.has_weight) {
      const size_t at = weight_operand(call.op);
      const Array& weight = call.operands[at].array();
      const QuantizedWeight q = quantized_weight(layer, weight);
      operands[at] = dequantized_weight(layer, q, weight.shape);
      if (layer.op == "matmul" && layer.format.activations == ActivationMode::kStatic &&
          q.scales.groups() == 1 && q.scales.format.symmetric &&
          q.scales.format.per != Granularity::kTensor)
        sums = {Tensor(), &layer, affine_of(layer.ranges[0]).scale, q.scales.scales};
      if (layer.format.activations == ActivationMode::kStatic && has_quantized_input(layer.op) &&
          operands.size() > 2 && operands[2].defined() && operands[2].is_concrete() &&
          operands[2].array().shape == Dims{q.scales.channels} && q.scales.groups() == 1 &&
          q.scales.format.symmetric)
        operands[2] =
            bias(layer, operands[2].array(), affine_of(layer.ranges[0]).scale, q.scales.scales);
    }
    Tensors results = next().apply({call.op, operands, call.attrs, call.results, call.constraints});
    if (sums.layer && results[0].ndim() == 2) {
      sums.result = results[0];
      products_made_.push_back(std::move(sums));
    }
    if (layer.rounds_result && layer.format.activations == ActivationMode::kStatic)
      results[0] = rounded(results[0], affine_of(layer.result_range));
    if (row_scales.defined()) results[0] = results[0] * row_scales;
    if (bias_behind.defined()) results[0] = results[0] + bias_behind;
    return results;
  }

  /// The products of an attention on integers; the shares that softmax gives lie between 0 and 1.
  static Tensor quantized_attention(const OpCall& call, const Tensors& operands) {
    const AttentionAttrs attrs(call.attrs);
    const Affine shares = affine_of({0, 1});
    return written_out_attention(operands[0], operands[1], operands[2], operands[3], attrs.scale,
                                 attrs.is_causal,
                                 [&](const Tensor& x) { return rounded(x, shares); });
  }

  Tensor dequantized_weight(const Layer& layer, const QuantizedWeight& q, const Dims& shape) {
    const WeightScales& s = q.scales;
    const ChannelAxis channels = layer.channel_axis();
    const bool first = channels == ChannelAxis::kFirst;
    const std::string name = layer.name + ".weight";
    // The layout of integers, and that of scales, which broadcast against them.
    Dims layout = shape, along(shape.size(), 1);
    const bool grouped = s.groups() > 1;
    if (grouped && first) {
      layout = {s.channels, s.groups(), s.group};
      along = {s.channels, s.groups(), 1};
    } else if (grouped) {
      layout = {s.groups(), s.group, s.channels};
      along = {s.groups(), 1, s.channels};
    } else if (s.format.per != Granularity::kTensor) {
      along[axis_of(channels, along.size())] = s.channels;
    } else {
      along = {};
    }
    const int bits = integers_ == Integers::kPacked ? s.format.storage_bits() : 8;
    const Array integers = weight_integers(q, layout, channels, bits);
    // Scales are [channels][groups]; a single one stands for all.
    std::vector<float> scales;
    std::vector<int8_t> zeros;
    if (along.empty()) {
      scales = {s.scales[0]};
      zeros = {static_cast<int8_t>(s.zeros[0])};
    } else if (first) {
      scales = s.scales;
      zeros.assign(s.zeros.begin(), s.zeros.end());
    } else {
      for (int64_t g = 0; g < s.groups(); ++g)
        for (int64_t c = 0; c < s.channels; ++c) {
          scales.push_back(s.scales[static_cast<size_t>(c * s.groups() + g)]);
          zeros.push_back(static_cast<int8_t>(s.zeros[static_cast<size_t>(c * s.groups() + g)]));
        }
    }
    const bool centered = std::all_of(zeros.begin(), zeros.end(), [](int8_t z) { return z == 0; });
    const Array zero =
        integer_array(centered ? std::vector<int8_t>{0} : zeros, centered ? Dims{} : along, bits);
    const Tensor scale = grouped ? parameter(name + "_scale", Array::from<float>(scales, along))
                                 : Tensor(Array::from<float>(scales, along));
    Tensor out = ops::dequantize(parameter(name, integers), scale, Tensor(zero));
    return grouped ? ops::reshape(out, to_shape(shape)) : out;
  }

  /// The bias in the units of the int32 sums.
  Tensor bias(const Layer& layer, const Array& given, float input_scale,
              const std::vector<float>& scales) {
    const Array values = given.contiguous();
    const int64_t channels = values.size();
    Array sums = Array::empty(DType::kI32, {channels}),
          units = Array::empty(DType::kF32, {channels});
    for (int64_t c = 0; c < channels; ++c) {
      const float unit = input_scale * scales[static_cast<size_t>(c)];
      units.data<float>()[c] = unit;
      const double steps = std::nearbyint(static_cast<double>(values.data<float>()[c]) / unit);
      // A channel of tiny weights: its bias does not fit, so the layer keeps a float bias.
      if (!(std::abs(steps) < 2147483000.0)) return Tensor(given);
      sums.data<int32_t>()[c] = static_cast<int32_t>(steps);
    }
    return ops::dequantize(parameter(layer.name + ".bias", sums), Tensor(units),
                           Tensor(Array::scalar(int32_t{0})));
  }

  /// A quantized product of matrices, with the units of its sums.
  struct Product {
    Tensor result;
    const Layer* layer = nullptr;
    float input_scale = 1;
    std::vector<float> scales;  ///< by channel
  };

  const std::vector<Layer>& layers_;
  std::vector<Product> products_made_;
  bool products_, layer_results_;
  Integers integers_;
  std::map<const void*, size_t> nested_;
  size_t next_layer_ = 0;
  int depth_ = 0;
  std::map<std::string, Tensor> parameters_;
  std::map<std::string, Array> weights_;
  std::vector<std::pair<Tensor, Tensor>> images_;  ///< inputs of convolutions, and their roundings
};

/// The attributes of an operation for a first input of this shape: a transposed convolution states
/// the shape of its result. None where that does not follow.
std::optional<Attrs> attrs_for(const ir::Operation& operation, const Shape& x) {
  if (weight_operand(*operation.op) != 0) return operation.attrs;
  const Conv2dInputGradAttrs a(operation.attrs);
  const Shape &given = operation.operands[1]->type.shape,
              &weight = operation.operands[0]->type.shape;
  Shape shape = a.input_shape;
  shape[0] = x[0];
  for (size_t i = 0; i < 2; ++i) {
    const size_t axis = i + (a.data_format == "NHWC" ? 1 : 2);
    const auto least = [&](const Dim& size) {
      return (size - 1) * a.stride[i] - a.padding[2 * i] - a.padding[2 * i + 1] +
             (weight[2 + i] - 1) * a.dilation[i] + 1;
    };
    const Dim extra = shape[axis] - least(given[axis]);
    if (!extra.is_constant()) return std::nullopt;
    shape[axis] = least(x[axis]) + extra;
  }
  Attrs out = operation.attrs;
  out[static_cast<size_t>(operation.op->attr_index("input_shape"))] = AttrValue(shape);
  return out;
}

Quantizer quantizer_of(const Quantizable& model, Integers integers, bool layer_results) {
  Quantizer out(model.layers(), model.has_products(), layer_results, integers);
  for (size_t i = model.top_level_layers(); i < model.layers().size(); ++i)
    out.add_nested(model.weight(i).raw(), i);
  return out;
}

}  // namespace

QuantizedWeight quantized_weight(const Layer& layer, const Array& weight) {
  if (layer.weight) return *layer.weight;
  return round_to_nearest(weight_rows(weight, layer.channel_axis()), layer.format.weights);
}

QuantizedFunction quantize(const Quantizable& model, Integers integers, bool layer_results) {
  Quantizer quantizer = quantizer_of(model, integers, layer_results);
  QuantizedFunction out;
  out.function = ir::retraced(model.function(), quantizer);
  if (layer_results) move_added_outputs(*out.function, model.outputs());
  out.weights = quantizer.take_weights();
  return out;
}

Tensor quantized_result(const Quantizable& model, size_t layer, const OpCall& call,
                        std::map<std::string, Array>& weights) {
  std::vector<Layer> layers = {model.layers().at(layer)};
  layers[0].quantized = true;
  Quantizer quantizer(layers, model.has_products(), false, Integers::kBytes);
  Tensor out;
  {
    const InterpreterScope above(quantizer);
    out = quantizer.apply(call).at(0);
  }
  weights.merge(quantizer.take_weights());
  return out;
}

bool can_isolate(const Quantizable& model, size_t index) {
  const Layer& layer = model.layers().at(index);
  const std::vector<size_t> inputs = layer.inputs();
  if (layer.nested || inputs.empty()) return false;
  const auto& operands = model.operations().at(index)->operands;
  if (!attrs_for(*model.operations().at(index), operands[inputs[0]]->type.shape)) return false;
  for (size_t i = 0; i < operands.size(); ++i)
    if (operands[i] && !operands[i]->constant &&
        std::find(inputs.begin(), inputs.end(), i) == inputs.end())
      return false;
  return true;
}

QuantizedFunction isolated_layer(const Quantizable& model, size_t index,
                                 const std::vector<Shape>& inputs, bool is_quantized,
                                 bool integer_ends, Range result) {
  const ir::Operation& operation = *model.operations().at(index);
  const std::vector<Layer> layers = {model.layers().at(index)};
  Quantizer quantizer(layers, model.has_products(), false, Integers::kBytes);
  QuantizedFunction out;
  out.function = std::make_shared<ir::Function>("layer", model.function().target);
  ir::Tracer tracer(*out.function);
  const InterpreterScope scope(tracer);
  Tensors operands;
  for (const ir::Value* value : operation.operands)
    operands.push_back(value && value->constant ? Tensor(*value->constant) : Tensor());
  const std::vector<size_t> at = layers[0].inputs();
  for (size_t i = 0; i < at.size(); ++i) {
    const DType dtype = integer_ends ? DType::kU8 : operation.operands[at[i]]->type.dtype;
    const Tensor x = tracer.input({ir::PortKind::kValue, str("x", i)}, {dtype, inputs.at(i)});
    operands[at[i]] = integer_ends ? dequantized(x, affine_of(layers[0].ranges[i])) : x;
  }
  const Attrs attrs = attrs_for(operation, inputs.at(0)).value();
  const Inferred inferred = infer_results(*operation.op, attrs, operands);
  const OpCall call{*operation.op, operands, attrs, inferred.results, inferred.constraints};
  Tensor y;
  if (is_quantized) {
    const InterpreterScope above(quantizer);
    y = quantizer.apply(call)[0];
  } else {
    y = tracer.apply(call)[0];
  }
  tracer.output({ir::PortKind::kValue, "y"}, integer_ends ? quantized(y, affine_of(result)) : y);
  out.weights = quantizer.take_weights();
  return out;
}

struct QuantizerScope::State {
  State(const Quantizable& model, std::map<std::string, Array>& to)
      : quantizer(quantizer_of(model, Integers::kBytes, false)), weights(to), scope(quantizer) {}
  Quantizer quantizer;
  std::map<std::string, Array>& weights;
  InterpreterScope scope;
};

QuantizerScope::QuantizerScope(const Quantizable& model, std::map<std::string, Array>& weights)
    : state_(std::make_unique<State>(model, weights)) {}

QuantizerScope::~QuantizerScope() {
  for (auto& [name, value] : state_->quantizer.take_weights()) state_->weights[name] = value;
}

}  // namespace paddle::quant
