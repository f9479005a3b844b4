#pragma once
// A model of a file as a function of its inputs and its weights, which somebody else holds: what
// training needs. Runs under whatever interpreter is active.

#include <functional>
#include <string>
#include <vector>

#include "onnx/graph/evaluator.h"
#include "onnx/graph/open_model.h"

namespace paddle::onnx {

/// An initialiser that a holder of weights keeps.
struct Weight {
  const formats::onnx::TensorData* data = nullptr;
  bool trainable = true;  ///< false: a statistic of batch normalisation
  const std::string& name() const { return data->name; }
};

class Network {
 public:
  /// Opens the file; its inputs must be tensors of known rank and its graph must keep to tensors.
  /// `use_float64`: everything that the file says in float32 is float64.
  explicit Network(const std::string& path, bool use_float64 = false);

  const OpenModel& opened() const { return opened_; }
  /// Floating initialisers of at least one dim, in the file's order; without those whose values
  /// decide how an operator works (sizes, bounds, scales of quantisation).
  const std::vector<Weight>& weights() const { return weights_; }
  /// Told of each node that reads weights, with what it took and gave.
  using Observer =
      std::function<void(const formats::onnx::Node& node, const std::vector<const Weight*>& weights,
                         const Values& inputs, const Values& outputs)>;
  /// How a run treats nodes that the file has in training mode: batch normalisation by the
  /// statistics of the batch, and dropout. Without `training` they infer.
  struct Mode {
    bool training = false;
    std::function<bool(const Weight&)> frozen;  ///< normalisation by such weights infers, too
    /// Told of the next running mean and variance.
    std::function<void(const Weight&, const Tensor& next)> update;
  };
  /// The graph's outputs, for values of the inputs and of the weights. kModel.
  Tensors run(const Tensors& inputs, const std::function<Tensor(const Weight&)>& value,
              const Mode& mode, const Observer& observe = nullptr) const;

 private:
  OpenModel opened_;
  std::vector<Weight> weights_;
};

}  // namespace paddle::onnx
