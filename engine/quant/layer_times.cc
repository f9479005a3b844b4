#include "quant/layer_times.h"

#include <fmt/core.h>

#include <cmath>
#include <map>

#include "base/text.h"
#include "quant/interruption.h"
#include "quant/quantize.h"
#include "runtime/compile.h"
#include "runtime/execute.h"

namespace paddle::quant {
namespace {

/// A compiled layer and its arguments.
class LayerRun {
 public:
  LayerRun(const QuantizedFunction& layer, std::vector<Array> inputs)
      : arguments_(std::move(inputs)) {
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

void time_layer(Quantizable& model, size_t index, const std::vector<Array>& inputs,
                const Array& result) {
  Layer& layer = model.layers()[index];
  const bool integer_ends = layer.format.activations == ActivationMode::kStatic;
  const Range range = range_of(result);
  std::vector<Shape> shapes;
  std::vector<Array> integers;
  for (const Array& each : inputs) {
    shapes.push_back(to_shape(each.shape));
    integers.push_back(Array::zeros(DType::kU8, each.shape));
  }
  LayerRun floats(isolated_layer(model, index, shapes, false, false, range), inputs);
  LayerRun quantized(isolated_layer(model, index, shapes, true, integer_ends, range),
                     integer_ends ? integers : inputs);
  constexpr double kSeconds = 0.02;
  const PairedTimes times =
      time_alternately([&] { floats.run(); }, [&] { quantized.run(); }, kSeconds);
  layer.float_us = 1000 * times.first;
  layer.quantized_us = 1000 * times.second;
}

}  // namespace

void measure_layers(Quantizable& model, const std::vector<Array>& inputs,
                    const WeightSource& weight, bool times, const Progress& progress) {
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
    for (size_t i = 0; i < model.top_level_layers(); ++i) {
      Sqnr sqnr;
      sqnr.add(expected.at(model.outputs() + i), found.at(model.outputs() + i));
      model.layers()[i].sqnr_db = sqnr.decibels();
    }
  }
  if (!times) return;
  FunctionRunner runner(model.with_layer_inputs(), weight);
  const std::vector<Array> values = runner.run(inputs);
  const std::vector<LayerInput> of_layers = model.layer_inputs();
  std::map<size_t, std::vector<Array>> layer_inputs;
  for (size_t at = 0; at < of_layers.size(); ++at)
    layer_inputs[of_layers[at].layer].push_back(values.at(model.outputs() + at).contiguous());
  int64_t done = 0;
  for (const auto& [layer, arrays] : layer_inputs) {
    stop_if_interrupted();
    progress({"measuring layers", done++, static_cast<int64_t>(layer_inputs.size())});
    if (can_isolate(model, layer))
      time_layer(model, layer, arrays, expected.at(model.outputs() + layer));
  }
}

int64_t keep_slow_layers_float(std::vector<Layer>& layers) {
  int64_t count = 0;
  for (Layer& layer : layers) {
    if (!layer.quantized || !(layer.quantized_us > layer.float_us)) continue;
    layer.quantized = false;
    const std::string text = fmt::format("slower in integers: {:.1f} us against {:.1f}",
                                         layer.quantized_us, layer.float_us);
    layer.why = text;
    ++count;
  }
  return count;
}

}  // namespace paddle::quant
