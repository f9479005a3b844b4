#pragma once
// What can be said against a model before it runs: operators that are not known, names that
// nothing gives or that two give, outputs that are not there.

#include "formats/onnx/model.h"

namespace paddle::onnx {

/// kModel, with the node's name, if something is wrong.
void check_model(const formats::onnx::Model& model);

}  // namespace paddle::onnx
