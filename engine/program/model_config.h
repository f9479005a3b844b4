#pragma once
// The `model:` of a config: a file of the model language or an ONNX file, or a model in place.

#include <memory>

#include "config/diagnostics.h"
#include "config/document.h"
#include "lang/syntax/program.h"

namespace paddle::program {

/// Makes the paths under `model:` absolute, and checks its form.
void resolve_model_path(config::Node& document, config::Diagnostics& diagnostics);
/// The program that a placed config means. kConfig, kUsage, or kModel for a bad ONNX file.
std::shared_ptr<const lang::Program> read_model(const config::Node& document);

}  // namespace paddle::program
