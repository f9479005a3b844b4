#pragma once
// Training with quantization (QAT). An interpreter rounds the inputs and weights of layers to the
// integers of their formats, and passes gradients straight through the rounding; what the model
// computes in training and evaluation is then what its integers will compute. Ranges of inputs are
// observed for a number of steps first. With learned scales (LSQ: Esser et al., 2020) both scales
// receive gradients, as the logarithm of a factor on the observed scale.
//
// After a convolution, a batch norm with fixed statistics is a part of it: in evaluation and
// prediction its factors are in the scales of the weight, and its shift in the bias.
//
// A layer `fc` has the states fc.input_low, fc.input_high and fc.observed_steps, and, with learned
// scales, the parameters fc.input_log_scale and fc.weight_log_scale.

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "lang/eval/host.h"
#include "quant_common/quant_config.h"
#include "tensor/interpreter.h"

namespace paddle::quant {

/// Whether a parameter or state of this path belongs to fake quantization.
bool is_quantization_value(const std::string& path);

/// The values of a step or of a model.
struct LayerValues {
  lang::ParameterProvider& store;
  /// The path of the parameter that a tensor is; "" if it is none.
  std::function<std::string(const Tensor&)> parameter_name;
  /// The value of a parameter or state, if it has one, for `FakeQuantMode::kPrediction`.
  std::function<std::optional<Array>(const std::string& path, const Dims& shape, DType dtype)>
      array;
};

enum class FakeQuantMode : uint8_t {
  kTraining,
  kEvaluation,  ///< the same values as training, without observing
  /// The same values as ordinary `quantize` and `dequantize` operations with constant scales.
  kPrediction,
};

class FakeQuantization {
 public:
  /// `config.training` must be set. kConfig for formats that cannot be trained.
  explicit FakeQuantization(QuantConfig config);

  std::unique_ptr<Interpreter> interpreter(const LayerValues& values, FakeQuantMode mode) const;
  /// kConfig if a rule of `layers:` has matched none of the layers that interpreters have met.
  void check_rules() const;
  const QuantConfig& config() const { return config_; }

 private:
  class Quantizer;
  QuantConfig config_;
  /// The layers that interpreters have met, in order.
  struct Met {
    std::vector<std::string> layers;
    std::vector<bool> rules;  ///< whether a rule has matched
  };
  std::shared_ptr<Met> met_;
};

}  // namespace paddle::quant
