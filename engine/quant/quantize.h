#pragma once
// Quantization of a traced model: the function with quantize/dequantize pairs around its layers.

#include <map>
#include <memory>
#include <string>

#include "quant/layers.h"

namespace paddle::quant {

struct QuantizedFunction {
  std::shared_ptr<ir::Function> function;
  std::map<std::string, Array> weights;  ///< its parameters
};

/// How integers of 4 bits are stored: two to a byte for files, or a byte each, which kernels read.
enum class Integers : uint8_t { kPacked, kBytes };

/// Inserts the pairs that the formats of the layers ask for: inputs as uint8, weights as integers
/// with their scales, biases as int32 where inputs have static scales. With `layer_results`,
/// results of layers are further outputs.
QuantizedFunction quantize(const Quantizable& model, Integers integers, bool layer_results = false);

/// The integers of a layer's weight: those a method chose, or the nearest.
QuantizedWeight quantized_weight(const Layer& layer, const Array& weight);

/// The result of a call that is this layer, quantized: traced by the tracer in force, which `call`
/// belongs to. Parameters are added to `weights`.
Tensor quantized_result(const Quantizable& model, size_t layer, const OpCall& call,
                        std::map<std::string, Array>& weights);

/// One layer by itself: a function from its inputs of these shapes to its result, in floats or
/// quantized. With `integer_ends`, inputs come as uint8 and the result leaves as uint8 of range
/// `result`, as between other layers of int8.
QuantizedFunction isolated_layer(const Quantizable& model, size_t layer,
                                 const std::vector<Shape>& inputs, bool quantized,
                                 bool integer_ends, Range result);
/// Whether nothing else that the layer reads is computed.
bool can_isolate(const Quantizable& model, size_t layer);

/// While it lives, calls on this thread that are the model's layers, as its function is replayed,
/// are quantized above the tracer that is in force. Parameters are added to `weights`.
class QuantizerScope {
 public:
  QuantizerScope(const Quantizable& model, std::map<std::string, Array>& weights);
  ~QuantizerScope();
  QuantizerScope(const QuantizerScope&) = delete;
  QuantizerScope& operator=(const QuantizerScope&) = delete;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace paddle::quant
