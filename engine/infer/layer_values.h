#pragma once
// Values inside of a model: results of layers and operations, which a prediction does not return.

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "program/traced_model.h"
#include "runtime/executable.h"

namespace paddle::infer {

/// A model that returns the values whose names match a pattern besides its outputs.
///
/// A value has the name that the model file gives it (of a variable, or of an ONNX value), or else
/// LAYER.OPERATION, such as `blocks.0.linear.matmul`; further ones with the same name end in _2,
/// _3, and so on. Patterns match either.
class LayerValues {
 public:
  /// kUsage if nothing matches one of the patterns, or if the model is not one graph.
  LayerValues(program::TracedModel model, const std::vector<std::string>& patterns);

  /// The outputs, then the values that match, in the order of the computation.
  const std::vector<std::string>& names() const { return names_; }
  /// LAYER.OPERATION of each, also of those with other names; "" for outputs that are inputs.
  const std::vector<std::string>& operations() const { return operations_; }
  /// Their arrays for these inputs, valid until the next call.
  std::vector<Array> run(const std::vector<Array>& inputs);

 private:
  program::TracedModel model_;
  std::vector<std::string> names_, operations_;
  std::vector<Array> arguments_;  ///< parameters and states; empty for inputs
  std::unique_ptr<runtime::Executable> executable_;
};

}  // namespace paddle::infer
