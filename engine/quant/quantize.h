#pragma once
// Static int8 quantization of a traced model: which layers, the statistics of their inputs, and the
// function with quantize/dequantize pairs around them.

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "ir/module.h"
#include "quant/observer.h"

namespace paddle::quant {

/// A convolution, linear layer or product with constant weights.
struct Layer {
  std::string name;      ///< of its weight without ".weight", or the operation and a number
  std::string op;        ///< name of the operation
  std::string location;  ///< in the model's text, if known
  bool quantized = true;
  std::string why;     ///< why it stays float
  Range input;         ///< chosen from the statistics
  double sqnr_db = 0;  ///< of its result in the quantized model, as far as it was measured
};

/// A function whose weights are constants, with its layers in the order of execution.
class Quantizable {
 public:
  /// Clones the function, binds its weights and folds batch normalization into convolutions.
  Quantizable(const ir::Function& function, const std::function<Array(const std::string&)>& weight);

  const std::vector<Layer>& layers() const { return layers_; }
  std::vector<Layer>& layers() { return layers_; }
  const ir::Function& function() const { return *function_; }
  /// The function with the inputs of all quantized layers as further outputs.
  std::shared_ptr<ir::Function> with_layer_inputs() const;
  /// The function with the results of all layers as further outputs.
  std::shared_ptr<ir::Function> with_layer_results() const;
  /// Number of outputs before the further ones.
  size_t outputs() const { return function_->outputs.size(); }

 private:
  std::unique_ptr<ir::Function> function_;
  std::vector<Layer> layers_;
};

struct QuantizedFunction {
  std::shared_ptr<ir::Function> function;
  std::map<std::string, Array> weights;  ///< its parameters
};

/// Inserts the pairs: inputs as uint8 with the range of each layer, weights as int8 per output
/// channel, biases as int32. With `layer_results`, results of layers are further outputs.
QuantizedFunction quantize(const Quantizable& model, bool layer_results = false);

}  // namespace paddle::quant
