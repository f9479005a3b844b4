#include "quant/layer_times.h"

#include <cmath>

#include "base/text.h"
#include "quant/quantize.h"
#include "runtime/compile.h"
#include "runtime/execute.h"

namespace paddle::quant {
namespace {

/// A compiled layer and its arguments.
class LayerRun {
 public:
  LayerRun(const QuantizedFunction& layer, const Array& input) : arguments_{input} {
    bind_parameters(*layer.function,
                    [&](const std::string& name) { return layer.weights.at(name); });
    executable_ = runtime::compile(layer.function, {});
  }
  void run() { executable_->run(arguments_); }

 private:
  std::unique_ptr<runtime::Executable> executable_;
  std::vector<Array> arguments_;
};

Range range_of(const Array& values) {
  const Array packed = values.cast(DType::kF32).contiguous();
  Range out;
  for (int64_t i = 0; i < packed.size(); ++i) {
    const double x = packed.data<float>()[i];
    if (!std::isfinite(x)) continue;
    out.low = std::min(out.low, x);
    out.high = std::max(out.high, x);
  }
  return out;
}

void time_layer(Quantizable& model, size_t index, const Array& input, const Array& result) {
  Layer& layer = model.layers()[index];
  const bool integer_ends = layer.format.activations == ActivationMode::kStatic;
  const Shape shape = to_shape(input.shape);
  const Range range = range_of(result);
  const Array integers = Array::zeros(DType::kU8, input.shape);
  LayerRun floats(isolated_layer(model, index, shape, false, false, range), input);
  LayerRun quantized(isolated_layer(model, index, shape, true, integer_ends, range),
                     integer_ends ? integers : input);
  constexpr double kSeconds = 0.02;
  const PairedTimes times =
      time_alternately([&] { floats.run(); }, [&] { quantized.run(); }, kSeconds);
  layer.float_us = 1000 * times.first;
  layer.quantized_us = 1000 * times.second;
}

}  // namespace

void measure_layers(Quantizable& model, const std::vector<Array>& inputs,
                    const WeightSource& weight, bool times) {
  std::vector<Array> arguments, expected;
  {
    FunctionRunner reference(model.with_layer_results(), weight);
    for (const Array& each : reference.run(inputs)) expected.push_back(runtime::copied(each));
  }
  {
    const QuantizedFunction observed = quantize(model, Integers::kBytes, /*layer_results=*/true);
    FunctionRunner quantized(observed.function, [&](const std::string& name) {
      const auto found = observed.weights.find(name);
      return found == observed.weights.end() ? weight(name) : found->second;
    });
    const std::vector<Array> found = quantized.run(inputs);
    for (size_t i = 0; i < model.layers().size(); ++i) {
      Sqnr sqnr;
      sqnr.add(expected.at(model.outputs() + i), found.at(model.outputs() + i));
      model.layers()[i].sqnr_db = sqnr.decibels();
    }
  }
  if (!times) return;
  FunctionRunner runner(model.with_layer_inputs(), weight);
  const std::vector<Array> layer_inputs = runner.run(inputs);
  size_t at = model.outputs();
  for (size_t i = 0; i < model.layers().size(); ++i) {
    if (!model.layers()[i].quantized) continue;
    const Array input = layer_inputs.at(at++).contiguous();
    if (model.layers()[i].op != "embedding")
      time_layer(model, i, input, expected.at(model.outputs() + i));
  }
}

int64_t keep_slow_layers_float(std::vector<Layer>& layers) {
  int64_t count = 0;
  for (Layer& layer : layers) {
    if (!layer.quantized || !(layer.quantized_us > layer.float_us)) continue;
    layer.quantized = false;
    char text[96];
    std::snprintf(text, sizeof text, "slower in integers: %.1f us against %.1f", layer.quantized_us,
                  layer.float_us);
    layer.why = text;
    ++count;
  }
  return count;
}

}  // namespace paddle::quant
