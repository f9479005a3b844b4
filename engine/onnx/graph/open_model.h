#pragma once
// Opens a model file and checks what can be checked without running it.

#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "onnx/graph/value.h"

namespace paddle::onnx {

struct OpenModel {
  std::shared_ptr<const formats::onnx::Model> model;
  /// Inputs that the caller provides: graph inputs without an initializer, and those whose
  /// initializer the caller overrides.
  std::vector<formats::onnx::ValueInfo> inputs;
  std::vector<size_t> positions;  ///< indices of `inputs` among the graph's inputs

  /// Expands the caller's inputs to one value per graph input.
  Values arguments(const Values& given) const;
  /// Shapes of the inputs, with a fresh symbol for each unnamed size; nullopt if the rank is
  /// unknown.
  std::vector<std::optional<Shape>> input_shapes() const;
  /// Types of the inputs with these shapes; empty if an input is not a tensor or has no full type.
  std::vector<TensorType> input_types() const;
};

/// Reads the file; kModel if it has unknown operators. `given` names inputs that the caller
/// provides even if they have an initializer; `outputs` those that the model shall have
/// (select_outputs.h).
OpenModel open_model(const std::string& path, const std::set<std::string>& given = {},
                     const std::set<std::string>& outputs = {});

}  // namespace paddle::onnx
