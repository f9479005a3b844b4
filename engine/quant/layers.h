#pragma once
// The layers of a traced model that can be quantized: operations with constant weights.

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "ir/module.h"
#include "quant_common/layer_format.h"
#include "quant_common/observer.h"

namespace paddle::quant {

/// A convolution, linear layer, product with a constant matrix, or embedding.
struct Layer {
  std::string name;       ///< of its weight without ".weight", or the operation and a number
  std::string parameter;  ///< its weight; "" if that is a constant
  std::string op;         ///< name of the operation
  std::string location;   ///< in the model's text, if known
  bool quantized = true;
  std::string why;  ///< why it stays float, or what a method could not do
  LayerFormat format;
  Range input;         ///< chosen from the statistics
  double sqnr_db = 0;  ///< of its result in the quantized model, as far as it was measured
  double float_us = 0, quantized_us = 0;  ///< median times of one sample; 0: not measured
  /// Integers that a method chose; else the nearest ones.
  std::shared_ptr<const QuantizedWeight> weight;

  bool channels_first() const { return has_channels_first(op); }
  std::string decision() const { return quantized ? format.text() : "float32"; }
};

/// A function whose weights are constants, with its layers in the order of execution.
class Quantizable {
 public:
  /// Clones the function, binds its weights and folds batch normalization into convolutions.
  Quantizable(const ir::Function& function, const std::function<Array(const std::string&)>& weight);

  const std::vector<Layer>& layers() const { return layers_; }
  std::vector<Layer>& layers() { return layers_; }
  const ir::Function& function() const { return *function_; }
  ir::Function& function() { return *function_; }
  /// The operation of each layer.
  const std::vector<ir::Operation*>& operations() const { return operations_; }
  const Array& weight(size_t layer) const { return *operations_.at(layer)->operands[1]->constant; }
  /// Replaces a constant operand of an operation; other uses of the constant keep it.
  void set_constant(ir::Operation& operation, size_t operand, const Array& value);

  /// The function with the inputs of all quantized layers as further outputs.
  std::shared_ptr<ir::Function> with_layer_inputs() const;
  /// The function with the results of all layers as further outputs.
  std::shared_ptr<ir::Function> with_layer_results() const;
  /// The function with, for each of these layers, its input as rows of features: their product
  /// with themselves [features, features], their sum [features], and their number: three further
  /// outputs each.
  std::shared_ptr<ir::Function> with_moments(const std::vector<size_t>& layers) const;
  /// Whether with_moments can take this layer.
  bool has_moments(size_t layer) const;
  /// Number of outputs before the further ones.
  size_t outputs() const { return function_->outputs.size(); }

 private:
  std::unique_ptr<ir::Function> function_;
  std::vector<Layer> layers_;
  std::vector<ir::Operation*> operations_;  ///< of the layers, in `function_`
};

/// Outputs that were added while tracing come before the function's `own` ones; puts them behind.
void move_added_outputs(ir::Function& function, size_t own);

}  // namespace paddle::quant
