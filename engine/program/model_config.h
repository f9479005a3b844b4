#pragma once
// The `model:` or `models:` of a config: files of the model language or ONNX files, or models in
// place.

#include <memory>
#include <string>
#include <vector>

#include "config/diagnostics.h"
#include "config/document.h"
#include "lang/syntax/program.h"

namespace paddle::program {

struct NamedModel {
  std::string name;  ///< "" for `model:`; else its parameters are "<name>.<path>"
  std::shared_ptr<const lang::Program> program;
  std::string weights = {};  ///< a file with initial weights; "" for none
  bool frozen = false;       ///< whether no update changes its parameters and states
};

/// Makes the paths under `model:` and `models:` absolute, and checks their form.
void resolve_model_paths(config::Node& document, config::Diagnostics& diagnostics);
/// The models of a resolved config, the one of `export:` first; a single one without a name for
/// `model:`. kConfig, kUsage, or kModel for a bad ONNX file.
std::vector<NamedModel> read_models(const config::Node& document);

}  // namespace paddle::program
