#pragma once
// Configs with places to fill in: `{{name}}` is a value, `{{64|8}}` a number of the full recipe and
// of its small form, which trains in seconds.

#include <map>
#include <string>

#include "recipes/recipe.h"

namespace paddle::recipes {

using Values = std::map<std::string, std::string>;

/// The template of the request's recipe with these values, and `file`, `run` and `data`. `name|8`
/// takes 8 in the small form. kInternal for a place without a value.
std::string fill_template(const RecipeRequest& request, Values values);

}  // namespace paddle::recipes
