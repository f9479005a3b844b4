#pragma once
// The `model:` of a config: a file of the model language or an ONNX file, or a model in place.

#include <memory>

#include "model/diagnostics.h"
#include "model/document.h"
#include "model/program.h"

namespace paddle::train {

/// Makes the paths under `model:` absolute, and checks its form.
void place_model(model::Node& document, model::Diagnostics& diagnostics);
/// The program that a placed config means. kConfig, kUsage, or kModel for a bad ONNX file.
std::shared_ptr<const model::Program> read_model(const model::Node& document);

}  // namespace paddle::train
