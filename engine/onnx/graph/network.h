#pragma once
// An ONNX model as a function of its inputs and of externally held weights, for training. Runs
// under the active interpreter.

#include <functional>
#include <set>
#include <string>
#include <vector>

#include "onnx/graph/evaluator.h"
#include "onnx/graph/open_model.h"

namespace paddle::onnx {

/// A trainable initializer or a running statistic.
struct Weight {
  const formats::onnx::TensorData* data = nullptr;
  bool trainable = true;  ///< false: a running statistic of batch normalization
  const std::string& name() const { return data->name; }
};

class Network {
 public:
  /// Opens the file. Its inputs must be tensors of known rank, and its graph must use tensors only.
  /// `outputs`: names of the values that it computes (select_outputs.h). `use_float64` replaces
  /// float32 by float64 throughout.
  explicit Network(const std::string& path, const std::set<std::string>& outputs = {},
                   bool use_float64 = false);

  const OpenModel& opened() const { return opened_; }
  /// Floating-point initializers with at least one axis, in the order of the file, except those
  /// that configure an operator (sizes, bounds, quantization scales).
  const std::vector<Weight>& weights() const { return weights_; }
  /// Called for each node that reads weights.
  using Observer =
      std::function<void(const formats::onnx::Node& node, const std::vector<const Weight*>& weights,
                         const Values& inputs, const Values& outputs)>;
  /// How nodes that the file marks as training run (batch normalization on batch statistics,
  /// dropout). Without `training` they run as in inference.
  struct Mode {
    bool training = false;
    /// Batch normalization with frozen weights runs as in inference.
    std::function<bool(const Weight&)> frozen;
    /// Receives the next running mean and variance.
    std::function<void(const Weight&, const Tensor& next)> update;
  };
  /// Outputs of the graph. kModel.
  Tensors run(const Tensors& inputs, const std::function<Tensor(const Weight&)>& value,
              const Mode& mode, const Observer& observe = nullptr) const;

 private:
  OpenModel opened_;
  std::vector<Weight> weights_;
};

}  // namespace paddle::onnx
