// Recipes for images: detection, segmentation, reading lines of text, and those that need images
// alone (autoencoder, GAN, diffusion, metric learning).

#include <algorithm>
#include <filesystem>

#include "base/error.h"
#include "base/files.h"
#include "data/options.h"
#include "formats/image.h"
#include "recipes/csv_look.h"
#include "recipes/recipes.h"
#include "recipes/template.h"

namespace paddle::recipes {
namespace {

namespace fs = std::filesystem;

/// A path relative to the config's folder.
std::string path_from_config(const RecipeRequest& request, const std::string& path) {
  RecipeRequest other = request;
  other.data = path;
  return data_path(other);
}

/// The column whose cells name images.
size_t image_column(const CsvLook& look, const RecipeRequest& request, size_t after = 0) {
  for (size_t c = after; c < look.columns.size(); ++c) {
    const auto cells = cells_of(request.data, c);
    if (cells.empty()) continue;
    if (formats::has_image_ending(cells[0])) return c;
  }
  fail(ErrorCode::kData, request.data, ": found no ", after ? "second " : "",
       "column with names of ", formats::kImageEndings, " files");
}

/// Fields of a file as a dataset, for a look at what they hold.
data::DatasetPtr open_fields(const RecipeRequest& request, std::vector<data::CsvField> fields) {
  data::CsvFileOptions csv;
  csv.path = request.data;
  csv.fields = std::move(fields);
  data::DatasetOptions options;
  options.source = std::move(csv);
  return data::make_dataset(options);
}

/// Size and color of the images of a dataset, from a look at some.
struct ImageLook {
  int64_t side = 64;     ///< half of them are at least so high and wide; 28 to 64, a multiple of 4
  bool is_gray = false;  ///< all of them
};

ImageLook look_at_images(const data::Dataset& dataset) {
  ImageLook out;
  out.is_gray = true;
  std::vector<int64_t> sides;
  data::Sample sample;
  const int64_t looks = std::min<int64_t>(dataset.size(), 50);
  for (int64_t i = 0; i < looks; ++i) {
    dataset.read(i * dataset.size() / looks, {}, sample);
    const auto& image = sample[0];
    const int64_t height = image.shape()[1], width = image.shape()[2], area = height * width;
    sides.push_back(std::min(height, width));
    for (int64_t p = 0; p < area && out.is_gray; ++p)
      out.is_gray = image.number(p) == image.number(p + area) &&
                    image.number(p) == image.number(p + 2 * area);
  }
  std::sort(sides.begin(), sides.end());
  if (!sides.empty()) out.side = std::clamp<int64_t>((sides[sides.size() / 2] + 3) / 4 * 4, 28, 64);
  return out;
}

}  // namespace

RecipeResult detection(const RecipeRequest& request) {
  std::string annotations = request.data, images = fs::path(request.data).parent_path().string();
  if (is_directory(request.data)) {
    images = request.data;
    annotations.clear();
    for (const std::string& name : list_directory(request.data))
      if (name.ends_with(".json")) annotations = join_path(request.data, name);
    if (annotations.empty())
      fail(ErrorCode::kData, request.data, ": expected a folder with a COCO file (.json), or the ",
           "file itself");
  }
  if (images.empty()) images = ".";
  if (is_directory(join_path(images, "images"))) images = join_path(images, "images");
  data::BoxOptions boxes;
  boxes.annotations = annotations;
  boxes.images = images;
  data::DatasetOptions options;
  options.source = boxes;
  const data::DatasetPtr dataset = data::make_dataset(options);
  const int64_t count = dataset->fields()[2].class_count;
  RecipeResult out;
  out.found = {str(dataset->size(), " images with boxes of ", count, " classes")};
  for (const std::string& line : dataset->warnings()) out.found.push_back(line);
  out.config =
      fill_template(request, {{"count", str(count)},
                              {"epochs", str(epochs_for(dataset->size() * 4 / 5, 100000, 10))},
                              {"data", path_from_config(request, annotations)},
                              {"images", path_from_config(request, images)}});
  return out;
}

RecipeResult segmentation(const RecipeRequest& request) {
  const CsvLook look = look_at_csv(request.data);
  const size_t image = image_column(look, request), mask = image_column(look, request, image + 1);
  data::CsvField field;
  field.name = "mask", field.columns = {look.columns[mask].name};
  field.kind = data::ColumnKind::kMask;
  const data::DatasetPtr dataset = open_fields(request, {field});
  int64_t largest = 0;
  data::Sample sample;
  for (int64_t i = 0; i < std::min<int64_t>(dataset->size(), 50); ++i) {
    dataset->read(i, {}, sample);
    for (int64_t p = 0; p < sample[0].size(); ++p)
      largest = std::max(largest, static_cast<int64_t>(sample[0].number(p)));
  }
  constexpr int64_t kMostClasses = 256;
  if (largest >= kMostClasses)
    fail(ErrorCode::kData, request.data, ": a mask has the value ", largest,
         "; classes are 0 to 255");
  RecipeResult out;
  out.found = {str(look.rows, " images in '", look.columns[image].name, "', masks in '",
                   look.columns[mask].name, "' with values 0 to ", largest)};
  if (largest > 32)
    out.found.push_back(
        "if the masks use few of these values, name them with `values: {0: background, 255: …}`");
  out.config = fill_template(request, {{"count", str(largest + 1)},
                                       {"epochs", str(epochs_for(look.rows * 4 / 5, 64000, 8))},
                                       {"image", yaml_text(look.columns[image].name)},
                                       {"mask", yaml_text(look.columns[mask].name)}});
  return out;
}

RecipeResult text_lines(const RecipeRequest& request) {
  const CsvLook look = look_at_csv(request.data);
  const size_t image = image_column(look, request);
  const size_t text = image == 0 ? 1 : 0;
  data::CsvField read, picture;
  read.name = "text", read.columns = {look.columns[text].name};
  read.kind = data::ColumnKind::kText, read.tokens = data::TokenKind::kCharacters;
  read.lowercase = false;
  picture.name = "image", picture.columns = {look.columns[image].name};
  picture.kind = data::ColumnKind::kImage, picture.channels = 1;
  const data::DatasetPtr dataset = open_fields(request, {read, picture});
  int64_t longest = 1;
  double ratio = 1;
  data::Sample sample;
  for (int64_t i = 0; i < dataset->size(); ++i) {
    longest = std::max(longest, dataset->length_of(i));
    if (i >= 100) continue;
    dataset->read(i, {}, sample);
    ratio = std::max(ratio, static_cast<double>(sample[1].shape()[2]) /
                                static_cast<double>(sample[1].shape()[1]));
  }
  const int64_t rows = request.small ? 16 : 32;
  // Two columns of the image make one of the output, and CTC needs more of them than characters.
  const auto wide = static_cast<int64_t>(ratio * static_cast<double>(rows));
  const int64_t columns =
      std::clamp<int64_t>((std::clamp(wide, longest * 5, longest * 10) + 15) / 16 * 16, 32, 1024);
  const int64_t characters = dataset->fields()[0].class_count;
  RecipeResult out;
  out.found = {str(look.rows, " lines with up to ", longest, " characters, ", characters - 1,
                   " different ones; images are resized to ", rows, "x", columns)};
  out.config = fill_template(request, {{"count", str(characters - 1)},
                                       {"epochs", str(epochs_for(look.rows * 9 / 10, 55000, 5))},
                                       {"characters", str(characters)},
                                       {"columns", str(columns)},
                                       {"longest", str(longest)},
                                       {"image", yaml_text(look.columns[image].name)},
                                       {"text", yaml_text(look.columns[text].name)}});
  return out;
}

/// The places of the GAN that take the class of an image; empty for images without classes.
void fill_labels(bool has_classes, Values& values) {
  values["classes"] = has_classes ? str(", classes: ", values["count"]) : "";
  values["label_input"] = has_classes ? ", label: \"int64[batch]\"" : "";
  values["seed"] = has_classes ? "concat([z, embedding(label, classes, noise)], 1)" : "z";
  // Agreement with the class (Miyato and Koyama, 2018).
  values["match"] =
      has_classes ? " + (embedding(label, classes, 2 * width) * linear(h, 2 * width)).sum(1)" : "";
  values["label"] = has_classes ? ", label" : "";
}

RecipeResult images_alone(const RecipeRequest& request) {
  RecipeResult out;
  Values values;
  const bool is_full = !request.small;
  int64_t images = 20000, side = 28;
  bool has_classes = true;
  if (request.data.empty()) {
    out.found = {"no data is given: the digits that the program draws itself"};
    values["channels"] = "1", values["side"] = "28", values["count"] = "10";
    values["image_data"] =
        str("  train: {kind: digits, size: ", is_full ? 20000 : 1024,
            ", seed: 1}\n  valid: {kind: digits, size: ", is_full ? 2000 : 256, ", seed: 2}");
    values["image_transforms"] = "";
  } else {
    data::ImageFolderOptions folder;
    folder.path = request.data;
    data::DatasetOptions options;
    options.source = folder;
    const data::DatasetPtr dataset = data::make_dataset(options);
    has_classes = dataset->fields().size() > 1;
    if (!has_classes && request.recipe == "metric-learning")
      fail(ErrorCode::kData, request.data, ": expected a folder per class with images");
    const ImageLook look = look_at_images(*dataset);
    if (is_full) side = look.side;
    const int64_t classes = has_classes ? dataset->fields()[1].class_count : 0;
    out.found = {str(dataset->size(), " images",
                     has_classes ? str(" in ", classes, " classes") : "", ", resized to ", side,
                     "x", side, look.is_gray ? ", gray" : "")};
    images = dataset->size() * 9 / 10;
    values["channels"] = look.is_gray ? "1" : "3", values["side"] = str(side),
    values["count"] = str(classes);
    const auto part = [&](const char* name) {
      return str("  ", name, ": {kind: images, path: ", data_path(request),
                 look.is_gray ? ", channels: 1" : "",
                 ", split: {train: 0.9, valid: 0.1}, part: ", name, "}");
    };
    values["image_data"] = part("train") + "\n" + part("valid");
    values["image_transforms"] =
        str("    - resize: {fields: image, height: ", side, ", width: ", side, "}\n");
  }
  values["epochs"] =
      str(epochs_for(images,
                     request.recipe == "gan" || request.recipe == "diffusion" ? 1000000
                     : request.recipe == "vae"                                ? 500000
                                                                              : 150000,
                     3));
  fill_labels(has_classes, values);
  values["width"] = side > 32 ? "32" : "16";
  out.config = fill_template(request, values);
  return out;
}

}  // namespace paddle::recipes
