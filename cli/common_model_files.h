#pragma once
// Training configs whose `model` is a language model in files of other tools.

#include <string>
#include <vector>

namespace paddle::cli {

/// The overrides, and further ones that put the model file of the family, its params and the
/// initial weights in the place of a Hugging Face folder or a GGUF file at `model:`; none for
/// another model. kConfig where the config sets itself what these files decide, kModel for files
/// that are damaged or not known.
std::vector<std::string> with_model_files(const std::string& config,
                                          std::vector<std::string> overrides);

/// A text in quotes, as the value of an override is read.
std::string quoted(const std::string& text);

}  // namespace paddle::cli
