#include "quant/quantize.h"

#include <algorithm>
#include <cmath>

#include "ir/replay.h"
#include "ir/tracer.h"
#include "ops/core/call.h"
#include "ops/core/operators.h"
#include "ops/generated/quantization.h"
#include "ops/generated/shape.h"

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

/// The integers of a weight as an array: rows of channels, or columns.
Array weight_integers(const QuantizedWeight& weight, const Dims& shape, bool channels_first,
                      int bits) {
  if (channels_first) return integer_array(weight.integers, shape, bits);
  const WeightScales& s = weight.scales;
  std::vector<int8_t> columns(weight.integers.size());
  for (int64_t c = 0; c < s.channels; ++c)
    for (int64_t f = 0; f < s.features; ++f)
      columns[static_cast<size_t>(f * s.channels + c)] =
          weight.integers[static_cast<size_t>(c * s.features + f)];
  return integer_array(columns, shape, bits);
}

/// Puts quantize/dequantize pairs around the layers of a trace.
class Quantizer final : public PassingInterpreter {
 public:
  Quantizer(const std::vector<Layer>& layers, bool layer_results, Integers integers)
      : layers_(layers), layer_results_(layer_results), integers_(integers) {}

  Tensors apply(const OpCall& call) override {
    const bool is_layer = depth_ == 0 && is_layer_op(call.op) && call.operands[1].is_concrete();
    if (!is_layer) return next().apply(call);
    const Layer& layer = layers_.at(next_layer_++);
    Tensors results = layer.quantized ? quantize_layer(call, layer) : next().apply(call);
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

  Tensors quantize_layer(const OpCall& call, const Layer& layer) {
    const BelowScope below(next());
    Tensors operands = call.operands;
    const Affine affine = affine_of(layer.input);
    if (layer.op != "embedding") {
      if (layer.format.activations == ActivationMode::kStatic)
        operands[0] = dequantized(quantized(operands[0], affine), affine);
      if (layer.format.activations == ActivationMode::kDynamic) {
        const Tensors q = ops::quantize_dynamic(operands[0]);
        operands[0] = ops::dequantize(q[0], q[1], q[2]);
      }
    }
    const Array& weight = call.operands[1].array();
    const QuantizedWeight q = quantized_weight(layer, weight);
    operands[1] = dequantized_weight(layer, q, weight.shape);
    if (layer.format.activations == ActivationMode::kStatic && operands.size() > 2 &&
        operands[2].defined() && operands[2].is_concrete() &&
        operands[2].array().shape == Dims{q.scales.channels} && q.scales.groups() == 1 &&
        q.scales.format.symmetric)
      operands[2] = bias(layer, operands[2].array(), affine.scale, q.scales.scales);
    return next().apply({call.op, operands, call.attrs, call.results, call.constraints});
  }

  Tensor dequantized_weight(const Layer& layer, const QuantizedWeight& q, const Dims& shape) {
    const WeightScales& s = q.scales;
    const bool first = layer.channels_first();
    const std::string name = layer.name + ".weight";
    // The layout of integers, and that of scales, which broadcast against them.
    Dims layout = shape, along(shape.size(), 1);
    const bool grouped = s.groups() > 1;
    if (grouped) {
      layout = {s.groups(), s.group, s.channels};
      along = {s.groups(), 1, s.channels};
    } else if (s.format.per != Granularity::kTensor) {
      (first ? along.front() : along.back()) = s.channels;
    } else {
      along = {};
    }
    const int bits = integers_ == Integers::kPacked ? s.format.bits : 8;
    const Array integers = weight_integers(q, layout, first, bits);
    // Scales are [channels][groups]; a single one stands for all.
    std::vector<float> scales;
    std::vector<int8_t> zeros;
    if (along.empty()) {
      scales = {s.scales[0]};
      zeros = {static_cast<int8_t>(s.zeros[0])};
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

  const std::vector<Layer>& layers_;
  bool layer_results_;
  Integers integers_;
  size_t next_layer_ = 0;
  int depth_ = 0;
  std::map<std::string, Array> weights_;
};

}  // namespace

QuantizedWeight quantized_weight(const Layer& layer, const Array& weight) {
  if (layer.weight) return *layer.weight;
  return round_to_nearest(weight_rows(weight, layer.channels_first()), layer.format.weights);
}

QuantizedFunction quantize(const Quantizable& model, Integers integers, bool layer_results) {
  Quantizer quantizer(model.layers(), layer_results, integers);
  QuantizedFunction out;
  out.function = ir::retraced(model.function(), quantizer);
  if (layer_results) move_added_outputs(*out.function, model.outputs());
  out.weights = quantizer.take_weights();
  return out;
}

QuantizedFunction isolated_layer(const Quantizable& model, size_t index, const Shape& input,
                                 bool is_quantized, bool integer_ends, Range result) {
  const ir::Operation& operation = *model.operations().at(index);
  const std::vector<Layer> layers = {model.layers().at(index)};
  Quantizer quantizer(layers, false, Integers::kBytes);
  QuantizedFunction out;
  out.function = std::make_shared<ir::Function>("layer");
  ir::Tracer tracer(*out.function);
  const InterpreterScope scope(tracer);
  const Affine in = affine_of(layers[0].input), to = affine_of(result);
  const DType dtype = integer_ends ? DType::kU8 : operation.operands[0]->type.dtype;
  const Tensor x = tracer.input({ir::PortKind::kValue, "x"}, {dtype, input});
  Tensors operands;
  for (const ir::Value* value : operation.operands)
    operands.push_back(value && value->constant ? Tensor(*value->constant) : Tensor());
  operands[0] = integer_ends ? dequantized(x, in) : x;
  const Inferred inferred = infer(*operation.op, operation.attrs, operands);
  const OpCall call{*operation.op, operands, operation.attrs, inferred.results,
                    inferred.constraints};
  Tensor y;
  if (is_quantized) {
    const InterpreterScope above(quantizer);
    y = quantizer.apply(call)[0];
  } else {
    y = tracer.apply(call)[0];
  }
  tracer.output({ir::PortKind::kValue, "y"}, integer_ends ? quantized(y, to) : y);
  out.weights = quantizer.take_weights();
  return out;
}

}  // namespace paddle::quant
