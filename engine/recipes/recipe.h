#pragma once
// Recipes: commented configs for a task, filled in from a profile of the user's data.

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace paddle::recipes {

struct RecipeInfo {
  std::string name, doc;
  bool needs_data = true;
  bool needs_base = false;  ///< a run whose model is trained further
};
std::vector<RecipeInfo> list_recipes();

struct RecipeRequest {
  std::string recipe;
  std::string data;    ///< file or folder
  std::string base;    ///< folder of the run to continue from, of recipes that need one
  std::string output;  ///< where the config will be: paths in it are relative to its folder
  bool small = false;  ///< a model and a run of seconds
  /// Of language models: "characters", "bytes" or "bpe"; "": characters of UTF-8, else bytes.
  std::string tokens = {};
  int64_t vocabulary_size = 0;  ///< of "bpe"; 0: by the size of the text
  // Of tables; "": found in the file.
  std::string delimiter = {};  ///< one character, or "tab"
  std::string target = {};     ///< the column to predict
  std::string group = {};      ///< of time series: the column that tells them apart
  std::string time = {};       ///< of time series: the column of times
  std::string images = {};     ///< of COCO files: the folder of the images
};

struct RecipeResult {
  std::string config;              ///< YAML with comments
  std::vector<std::string> found;  ///< properties of the data, one line each
  /// Files that belong to the config, by path, to be written before it.
  std::vector<std::pair<std::string, std::string>> files = {};
};

/// kUsage for an unknown recipe or a path that does not exist, kData if the data does not fit the
/// recipe, with what it expects.
RecipeResult make_config(const RecipeRequest& request);

}  // namespace paddle::recipes
