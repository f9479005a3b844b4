#include "common_model_files.h"

#include "base/error.h"
#include "base/files.h"
#include "config/document.h"
#include "config/overrides.h"
#include "llm/family.h"
#include "llm/model_files.h"

namespace paddle::cli {

std::string quoted(const std::string& text) {
  std::string out = "'";
  for (const char c : text) out += c == '\'' ? "''" : std::string(1, c);
  return out + "'";
}

namespace {

bool is_model_files(const std::string& path) {
  if (is_directory(path)) return file_exists(join_path(path, "config.json"));
  return path.ends_with(".gguf") && file_exists(path);
}

/// Rejects what the model's files say.
void check_free(const config::Node& document, const char* section, const char* key,
                const std::string& path) {
  const config::Node* node = document.find(section);
  if (node && key) node = node->find(key);
  if (node && !node->is_null())
    throw Error(ErrorCode::kConfig,
                str("'", section, key ? str(".", key) : "", "': it follows from the model, ", path),
                node->location());
}

}  // namespace

std::vector<std::string> with_model_files(const std::string& config,
                                          std::vector<std::string> overrides) {
  config::Diagnostics diagnostics;
  config::Node document = config::read_extended(config, diagnostics);
  for (const std::string& text : overrides)
    config::apply_override(document, config::parse_override(text));
  config::resolve_references(document, diagnostics);
  const config::Node* model = document.find("model");
  // Other mistakes are reported with the rest of the config.
  if (!model || !model->is_scalar() || model->text.empty()) return overrides;
  const std::string path = config::resolve_path(*model);
  if (!is_model_files(path)) return overrides;
  check_free(document, "params", nullptr, path);
  check_free(document, "init", "weights", path);
  check_free(document, "init", "map", path);
  const llm::Family family = llm::find_family(llm::open_model_files(path), "");
  for (const std::string& change : {"model=" + quoted(family.file), "init.weights=" + quoted(path),
                                    "init.map=" + quoted(family.rules)})
    overrides.push_back(change);
  overrides.insert(overrides.end(), family.overrides.begin(), family.overrides.end());
  return overrides;
}

}  // namespace paddle::cli
