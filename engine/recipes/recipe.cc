#include "recipes/recipe.h"

#include <algorithm>
#include <filesystem>

#include "base/error.h"
#include "base/files.h"
#include "recipes/recipes.h"

namespace paddle::recipes {
namespace {

namespace fs = std::filesystem;

constexpr char kLanguageModel[] = "language-model";

struct Recipe {
  RecipeInfo info;
  RecipeResult (*make)(const RecipeRequest&);
};

const std::vector<Recipe>& recipes() {
  static const std::vector<Recipe> all = {
      {{"image-classification", "photos in a folder per class"}, image_classification},
      {{"tabular-classification", "a table with a column of classes, the last one or --target"},
       [](const RecipeRequest& request) { return tabular(request, true); }},
      {{"tabular-regression", "a table with a column of numbers, the last one or --target"},
       [](const RecipeRequest& request) { return tabular(request, false); }},
      {{"text-classification", "a CSV file with a column of texts and one of classes"},
       text_classification},
      {{kLanguageModel, "a text file, continued by characters, bytes or subwords"}, language_model},
      {{"lora", "data like that of a trained run, and the run (--base)", true, true}, lora},
      {{"detection", "images with boxes: a COCO file, or a folder or data.yaml of YOLO"},
       detection},
      {{"segmentation", "a CSV file of images and masks"}, segmentation},
      {{"text-lines", "a CSV file of images of lines and their text (OCR)"}, text_lines},
      {{"tagging", "a CSV file of sentences and a tag for each word"}, tagging},
      {{"sequence-to-sequence", "a CSV file of texts and what they become"}, sequence_to_sequence},
      {{"speech-commands", "a CSV file of audio files and their classes"}, speech_commands},
      {{"recommender", "a CSV file of users, items and clicks or ratings"}, recommender},
      {{"time-series", "a CSV file of numbers in the order of time"}, time_series},
      {{"vae", "images, or digits that the program draws", false}, unlabeled_images},
      {{"gan", "images, or digits that the program draws", false}, unlabeled_images},
      {{"diffusion", "images, or digits that the program draws", false}, unlabeled_images},
      {{"metric-learning", "images in a folder per class, or digits that the program draws", false},
       unlabeled_images},
      {{"pinn", "a differential equation; points are drawn", false}, pinn}};
  return all;
}

/// kUsage for options that the recipe does not use.
void check_options(const RecipeRequest& request) {
  static const std::vector<std::string> kTables = {"tabular-classification",
                                                   "tabular-regression",
                                                   "text-classification",
                                                   "segmentation",
                                                   "text-lines",
                                                   "tagging",
                                                   "sequence-to-sequence",
                                                   "speech-commands",
                                                   "recommender",
                                                   "time-series"};
  static const std::vector<std::string> kTargets = {
      "tabular-classification", "tabular-regression", "text-classification", "tagging",
      "sequence-to-sequence",   "speech-commands",    "recommender",         "time-series"};
  const auto check = [&](const char* option, const std::string& value,
                         const std::vector<std::string>& suited) {
    if (!value.empty() && std::find(suited.begin(), suited.end(), request.recipe) == suited.end())
      fail(ErrorCode::kUsage, option, " is for the recipes ", join(suited, ", "));
  };
  check("--delimiter", request.delimiter, kTables);
  check("--target", request.target, kTargets);
  check("--group", request.group, {"time-series"});
  check("--time", request.time, {"time-series"});
  check("--images", request.images, {"detection"});
}

}  // namespace

std::vector<RecipeInfo> list_recipes() {
  std::vector<RecipeInfo> out;
  for (const Recipe& each : recipes()) out.push_back(each.info);
  return out;
}

RecipeResult make_config(const RecipeRequest& request) {
  std::vector<std::string> names;
  for (const Recipe& each : recipes()) {
    if (each.info.name == request.recipe) {
      check_options(request);
      if (each.info.needs_base && request.base.empty())
        fail(ErrorCode::kUsage, "no run is given: --base RUN (", each.info.doc, ")");
      if (!each.info.needs_base && !request.base.empty())
        fail(ErrorCode::kUsage, "--base: the recipe ", each.info.name, " begins with new weights");
      if ((!request.tokens.empty() || request.vocabulary_size > 0) &&
          request.recipe != kLanguageModel)
        fail(ErrorCode::kUsage, "--tokens and --vocabulary-size are for the recipe ",
             kLanguageModel);
      if (request.data.empty() && !each.info.needs_data) return each.make(request);
      if (request.data.empty())
        fail(ErrorCode::kUsage, "no data is given: --data PATH (", each.info.doc, ")");
      if (!file_exists(request.data) && !is_directory(request.data))
        fail(ErrorCode::kUsage, request.data, ": no such file or folder");
      return each.make(request);
    }
    names.push_back(each.info.name);
  }
  fail(ErrorCode::kUsage, "unknown recipe '", request.recipe, "'",
       did_you_mean(request.recipe, names), "; recipes are ", join(names, ", "));
}

std::string yaml_text(const std::string& text) {
  const bool plain = !text.empty() && std::all_of(text.begin(), text.end(), [](const char c) {
    return std::isalnum(static_cast<unsigned char>(c)) || c == '_' || c == '.' || c == '/' ||
           c == '-';
  }) && std::isalpha(static_cast<unsigned char>(text[0]));
  if (plain) return text;
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') out += '\\';
    out += c;
  }
  return out + "\"";
}

std::string relative_path(const RecipeRequest& request, const std::string& path) {
  std::error_code error;
  const fs::path data = fs::weakly_canonical(path, error);
  const fs::path folder =
      fs::weakly_canonical(fs::absolute(request.output, error).parent_path(), error);
  const fs::path relative = data.lexically_relative(folder);
  // A path that climbs far is clearer as an absolute one.
  const std::string text = relative.string();
  return yaml_text(text.empty() || text.starts_with("../../..") ? data.string() : text);
}

std::string data_path(const RecipeRequest& request) { return relative_path(request, request.data); }

std::string run_name(const RecipeRequest& request) {
  std::string out;
  for (const char c : fs::path(request.output).stem().string())
    out += std::isalnum(static_cast<unsigned char>(c)) || c == '_' || c == '-' ? c : '_';
  return out.find_first_not_of('_') == std::string::npos ? request.recipe : out;
}

int64_t epochs_for(int64_t samples, int64_t seen, int64_t least) {
  return std::clamp<int64_t>(seen / std::max<int64_t>(samples, 1), least, 60);
}

}  // namespace paddle::recipes
