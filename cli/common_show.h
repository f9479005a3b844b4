#pragma once
// `paddle show` of Hugging Face folders and GGUF files.

#include <map>
#include <string>
#include <vector>

namespace paddle::cli {

struct LanguageModelView {
  std::vector<std::string> overrides;   ///< of the family's params, such as params.layers=2
  std::string family = {};              ///< a model file; empty: one that comes with the programs
  std::map<std::string, int64_t> dims;  ///< sizes, for FLOPs
  int depth = 1;
  bool training = false;
};

/// Prints what the files hold and the layers of the model. Reads no weights.
void show_language_model(const std::string& path, const LanguageModelView& view);

}  // namespace paddle::cli
