#pragma once
// The layers of a traced model that can be quantized: operations with constant weights, and
// products of two activations.

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "ir/module.h"
#include "quant_common/layer_format.h"
#include "quant_common/observer.h"

namespace paddle::quant {

/// The measure of how sensitive a layer is: the noise of the model's output when only it takes
/// integers, in decibels (less is more sensitive), or the change of the loss to first order (more
/// is).
enum class Sensitivity : uint8_t { kSqnr, kGradient };
/// "sqnr" or "gradient", as the schema has them.
Sensitivity parse_sensitivity(const std::string& name);

/// A convolution (a transposed one too), linear layer, product with a constant matrix, recurrent
/// layer or embedding; or, without a weight, a matmul of two activations or an attention.
struct Layer {
  std::string name;       ///< of its weight without ".weight", or the operation and a number
  std::string parameter;  ///< its weight; "" if that is a constant
  std::string op;        ///< name of the operation; "conv2d_transpose" although it is traced as the
                         ///< gradient of a convolution
  std::string location;  ///< in the model's text, if known
  bool has_weight = true;
  bool transposed = false;  ///< a matmul whose weight is [out, in]
  bool depthwise = false;   ///< a transposed convolution whose weight is [channels, 1, …]
  bool nested = false;      ///< in a region of control flow
  bool quantized = true;
  std::string why;  ///< why it stays float, or what a method could not do
  LayerFormat format;
  /// Of `inputs()`, chosen from the statistics.
  std::vector<Range> ranges;
  /// A convolution of integers whose result only a sum reads: for runtimes that add integers, the
  /// result becomes integers of this range.
  bool rounds_result = false;
  Range result_range;
  double sqnr_db = 0;  ///< of its result in the quantized model, as far as it was measured
  /// Of the model's output when only this layer takes integers, if it was measured.
  std::optional<double> output_sqnr_db;
  /// Of the loss, to first order, when only this layer takes integers, if it was computed.
  std::optional<double> loss_change;
  double float_us = 0, quantized_us = 0;  ///< median times of one sample; 0: not measured
  /// Integers that a method chose; else the nearest ones.
  std::shared_ptr<const QuantizedWeight> weight;

  /// If it is known.
  std::optional<double>& sensitivity(Sensitivity by) {
    return by == Sensitivity::kGradient ? loss_change : output_sqnr_db;
  }
  /// Whether this layer is the more sensitive one; those that are not known come last.
  bool is_more_sensitive(const Layer& other, Sensitivity by) const;
  /// The axis of output channels in its weight. Groups of a transposed convolution share scales.
  ChannelAxis channel_axis() const;
  bool channels_first() const { return channel_axis() == ChannelAxis::kFirst; }
  /// The operands that become integers where activations do.
  std::vector<size_t> inputs() const;
  std::string decision() const { return quantized ? format.text() : "float32"; }
};

/// The operand of a layer's operation that is its weight.
size_t weight_operand(const Op& op);
/// Whether a call is a layer. `products`: those of two activations are.
bool is_layer(const Op& op, bool first_is_constant, bool second_is_constant, bool products);

/// An operand of a layer.
struct LayerInput {
  size_t layer = 0, operand = 0;
};

/// A function whose weights are constants, with its layers: those at the top level in the order of
/// execution, then those in regions of control flow.
class Quantizable {
 public:
  /// Clones the function, binds its weights and folds batch normalization into convolutions.
  Quantizable(const ir::Function& function, const std::function<Array(const std::string&)>& weight,
              bool products = false);

  const std::vector<Layer>& layers() const { return layers_; }
  std::vector<Layer>& layers() { return layers_; }
  const ir::Function& function() const { return *function_; }
  ir::Function& function() { return *function_; }
  /// Whether products of two activations are layers.
  bool has_products() const { return products_; }
  /// The operation of each layer.
  const std::vector<ir::Operation*>& operations() const { return operations_; }
  const Array& weight(size_t layer) const { return *weight_of(*operations_.at(layer)); }
  /// The constant weight of an operation; null if it has none.
  static const Array* weight_of(const ir::Operation& operation);
  /// Replaces a constant operand of an operation; other uses of the constant keep it.
  void set_constant(ir::Operation& operation, size_t operand, const Array& value);

  /// The outputs that with_layer_inputs adds, in order: inputs of quantized layers.
  std::vector<LayerInput> layer_inputs() const;
  /// The function with the inputs of all quantized layers at the top level as further outputs, and
  /// after them, if asked for, the results of `rounded_results()`.
  std::shared_ptr<ir::Function> with_layer_inputs(bool results = false) const;
  /// The quantized layers with `rounds_result`.
  std::vector<size_t> rounded_results() const;
  /// Sets `rounds_result` of the convolutions whose results only sums of two activations read.
  void round_sums();
  /// The layers whose results with_layer_results adds: those at the top level, 0 to n - 1.
  size_t top_level_layers() const;
  /// The function with the results of these layers as further outputs.
  std::shared_ptr<ir::Function> with_layer_results() const;
  /// Number of outputs before the further ones.
  size_t outputs() const { return function_->outputs.size(); }

 private:
  std::unique_ptr<ir::Function> function_;
  bool products_;
  std::vector<Layer> layers_;
  std::vector<ir::Operation*> operations_;  ///< of the layers, in `function_`
};

/// Outputs that were added while tracing come before the function's `own` ones; puts them after.
void move_added_outputs(ir::Function& function, size_t own);

}  // namespace paddle::quant
