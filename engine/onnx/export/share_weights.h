#pragma once
// Integer weights that a graph has twice, such as a quantized table that the output layer shares,
// are stored once.

#include "formats/onnx/model.h"

namespace paddle::onnx {

/// Matrices of 8 bits that are equal become one initializer; a Transpose node makes the transposed
/// one, which runtimes compute when they load the file. A table keeps its form. Initializers
/// without a value are left as they are.
void share_integer_weights(formats::onnx::Graph& graph);

}  // namespace paddle::onnx
