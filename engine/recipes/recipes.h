#pragma once
// The recipes of make_config, and what they share.

#include <cstdint>

#include "recipes/recipe.h"

namespace paddle::recipes {

RecipeResult image_classification(const RecipeRequest& request);
RecipeResult tabular(const RecipeRequest& request, bool classification);
RecipeResult text_classification(const RecipeRequest& request);
RecipeResult language_model(const RecipeRequest& request);
// Recipes with a template (templates/NAME.yaml).
RecipeResult detection(const RecipeRequest& request);
RecipeResult segmentation(const RecipeRequest& request);
RecipeResult text_lines(const RecipeRequest& request);
RecipeResult tagging(const RecipeRequest& request);
RecipeResult sequence_to_sequence(const RecipeRequest& request);
RecipeResult speech_commands(const RecipeRequest& request);
RecipeResult recommender(const RecipeRequest& request);
RecipeResult time_series(const RecipeRequest& request);
/// vae, gan, diffusion and metric-learning: a folder of images, or none for drawn digits.
RecipeResult unlabeled_images(const RecipeRequest& request);
/// Low-rank adapters next to the model of another run.
RecipeResult lora(const RecipeRequest& request);
/// A differential equation; it takes no data.
RecipeResult pinn(const RecipeRequest& request);

/// A path as a config in the folder of `output` names it, quoted for YAML where needed.
std::string relative_path(const RecipeRequest& request, const std::string& path);
/// That of the data.
std::string data_path(const RecipeRequest& request);
/// The name of the run: that of the config's file.
std::string run_name(const RecipeRequest& request);
/// How often training goes over `samples`, so that about `seen` are seen in all: few data are seen
/// often, many a few times each. At least `least` and at most 60 times.
int64_t epochs_for(int64_t samples, int64_t seen, int64_t least);
/// A text as a YAML scalar.
std::string yaml_text(const std::string& text);

}  // namespace paddle::recipes
