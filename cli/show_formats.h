#pragma once
// `paddle show`: summaries as JSON; Hugging Face folders and GGUF files.

#include <map>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "lang/eval/summary.h"

namespace paddle::cli {

struct LanguageModelView {
  std::vector<std::string> overrides;   ///< of the family's params, such as params.layers=2
  std::string family = {};              ///< a model file; empty: one that comes with the programs
  std::map<std::string, int64_t> dims;  ///< sizes, for FLOPs
  int depth = 1;
  bool training = false;
  bool json = false;  ///< print a JSON object on the last line
};

/// Prints what the files hold and the layers of the model. Reads no weights.
void show_language_model(const std::string& path, const LanguageModelView& view);

/// A summary with all of its lines.
nlohmann::ordered_json to_json(const lang::Summary& summary);
/// Prints one JSON object; bytes that are not UTF-8 are replaced.
void print_json(const nlohmann::ordered_json& object);

}  // namespace paddle::cli
