// Low-rank adapters: the model of a run, trained further on other data of the same kind.

#include <algorithm>

#include "base/error.h"
#include "base/files.h"
#include "config/document.h"
#include "recipes/recipes.h"
#include "recipes/template.h"

namespace paddle::recipes {
namespace {

/// The config that a run keeps in its folder.
config::Node config_of(const std::string& run) {
  const std::string file = join_path(run, "config.yaml");
  if (!file_exists(file) || !is_directory(join_path(run, "model")))
    fail(ErrorCode::kUsage, run,
         ": is not the folder of a finished run, with config.yaml and model/");
  config::Diagnostics diagnostics;
  config::Node out = config::read_document(file, diagnostics);
  diagnostics.raise();
  return out;
}

/// Whether this part of the data is read from a path, which another one can replace.
bool has_path(const config::Node* data, const char* part) {
  const config::Node* section = data ? data->find(part) : nullptr;
  const config::Node* path = section ? section->find("path") : nullptr;
  return path && path->is_scalar();
}

/// `share` of the base's length, in its own unit: a bound of 0 is none.
std::string length_of(const config::Node& base, double share, int64_t least) {
  const config::Node* train = base.find("train");
  for (const char* key : {"steps", "epochs"}) {
    const config::Node* node = train ? train->find(key) : nullptr;
    const int64_t bound = node ? node->try_int().value_or(0) : 0;
    if (bound <= 0) continue;
    const auto scaled = static_cast<int64_t>(static_cast<double>(bound) * share);
    return str(key, ": ", std::max(scaled, key[0] == 'e' ? int64_t{1} : least));
  }
  return "epochs: 1";
}

/// Adapters learn well at a few times the rate of the matrices themselves.
std::string rate_of(const config::Node& base) {
  constexpr double kFactor = 4;
  const config::Node* optimizer = base.find("optimizer");
  const config::Node* rate = optimizer ? optimizer->find("lr") : nullptr;
  const auto value = rate ? rate->try_double() : std::nullopt;
  return value
             ? str("optimizer: {lr: ", kFactor * *value, "}      # four times that of the run\n\n")
             : "";
}

}  // namespace

RecipeResult lora(const RecipeRequest& request) {
  const config::Node base = config_of(request.base);
  const config::Node* data = base.find("data");
  if (!has_path(data, "train"))
    fail(ErrorCode::kData, join_path(request.base, "config.yaml"),
         ": data.train has no `path`, which other data could replace");
  const std::string model = join_path(request.base, "model");
  const std::string fitted = join_path(model, "fitted.json");
  std::string parts;
  for (const char* part : {"train", "valid"})
    if (has_path(data, part)) parts += str("  ", part, ": {path: ", data_path(request), "}\n");
  RecipeResult out;
  out.found = {str("the model and the settings of ", request.base)};
  out.config = fill_template(
      request,
      {{"base", relative_path(request, join_path(request.base, "config.yaml"))},
       {"weights", relative_path(request, model)},
       {"fitted", file_exists(fitted) ? str("  fitted: ", relative_path(request, fitted),
                                            "      # the vocabulary, classes and scaling\n")
                                      : ""},
       {"rate", rate_of(base)},
       {"parts", parts},
       {"length", length_of(base, request.small ? 0.1 : 0.25, request.small ? 20 : 100)}});
  return out;
}

}  // namespace paddle::recipes
