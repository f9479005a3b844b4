#pragma once
// Static checks of a model before it runs: unknown operators, undefined or duplicate names, missing
// outputs.

#include "formats/onnx/model.h"

namespace paddle::onnx {

/// Throws kModel with the node's name at the first problem.
void check_model(const formats::onnx::Model& model);

}  // namespace paddle::onnx
