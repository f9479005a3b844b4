#pragma once
// The recipes behind make_config, and what they share.

#include "recipes/recipe.h"

namespace paddle::recipes {

RecipeResult image_classification(const RecipeRequest& request);
RecipeResult tabular(const RecipeRequest& request, bool classification);
RecipeResult text_classification(const RecipeRequest& request);
RecipeResult character_language_model(const RecipeRequest& request);

/// The path as a config in the folder of `output` names it, quoted for YAML where needed.
std::string data_path(const RecipeRequest& request);
/// A name for the run, from the last part of the data's path.
std::string run_name(const RecipeRequest& request);
/// A text as a YAML scalar.
std::string yaml_text(const std::string& text);

}  // namespace paddle::recipes
