// Recipes for images: detection, segmentation, reading lines of text, and those that need images
// only (autoencoder, GAN, diffusion, metric learning).

#include <algorithm>
#include <filesystem>
#include <map>
#include <optional>
#include <set>

#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/files.h"
#include "config/document.h"
#include "data/options.h"
#include "data/tokens.h"
#include "formats/csv.h"
#include "formats/image.h"
#include "recipes/csv_profile.h"
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
size_t image_column(const CsvProfile& profile, const RecipeRequest& request, size_t after = 0) {
  for (size_t c = after; c < profile.columns.size(); ++c) {
    const auto cells = cells_of(profile, profile.columns[c]);
    if (cells.empty()) continue;
    if (formats::has_image_ending(cells[0])) return c;
  }
  fail(ErrorCode::kData, request.data, ": found no ", after ? "second " : "",
       "column with names of ", formats::kImageEndings, " files");
}

/// Fields of a file as a dataset, to profile what they hold.
data::DatasetPtr open_table(const CsvProfile& profile, std::vector<data::CsvField> fields) {
  data::CsvFileOptions csv = profile.format;
  csv.fields = std::move(fields);
  data::DatasetOptions options;
  options.source = std::move(csv);
  return data::make_dataset(options);
}

/// Size and color of the images of a dataset, from a sample.
struct ImageProfile {
  int64_t side = 64;     ///< half of them are at least so high and wide; 28 to 64, a multiple of 4
  bool is_gray = false;  ///< all of them
};

ImageProfile profile_images(const data::Dataset& dataset) {
  ImageProfile out;
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

namespace {

/// The parts of a data set with boxes, as the config names them.
struct BoxParts {
  data::BoxOptions train;
  std::optional<data::BoxOptions> valid = {};
  std::vector<std::string> found = {};
};

/// The first image that a COCO file lists; nullopt if the file is not one with boxes.
std::optional<std::string> first_image(const std::string& path) {
  constexpr uint64_t kMaxFileBytes = uint64_t{1} << 31;
  const auto json =
      nlohmann::json::parse(read_file(path, kMaxFileBytes, ErrorCode::kData), nullptr, false);
  if (!json.is_object() || !json.contains("images") || !json.contains("annotations") ||
      !json.contains("categories"))
    return std::nullopt;
  const auto& images = json["images"];
  if (!images.is_array() || images.empty() || !images[0].is_object() ||
      !images[0].contains("file_name") || !images[0]["file_name"].is_string())
    return std::nullopt;
  return images[0]["file_name"].get<std::string>();
}

/// The folder of the images of a COCO file: next to it, in `images`, in a folder of its own name
/// (train.json and train/, annotations/instances_train2017.json and train2017/).
std::string images_of(const RecipeRequest& request, const std::string& annotations) {
  if (!request.images.empty()) return request.images;
  const auto image = first_image(annotations);
  if (!image)
    fail(ErrorCode::kData, annotations,
         ": is not a JSON object with images, annotations and categories");
  fs::path folder = fs::path(annotations).parent_path();
  if (folder.empty()) folder = ".";
  std::string own = fs::path(annotations).stem().string();
  for (const char* prefix : {"instances_", "annotations_", "_annotations."})
    if (own.starts_with(prefix)) own = own.substr(std::string_view(prefix).size());
  std::vector<fs::path> places;
  for (const fs::path& base : {folder, fs::absolute(folder).lexically_normal().parent_path()})
    for (const fs::path& each : {base, base / "images", base / own, base / "images" / own})
      places.push_back(each.lexically_normal());
  for (const fs::path& place : places)
    if (file_exists((place / *image).string())) return place.string();
  std::vector<std::string> looked;
  for (const fs::path& place : places) looked.push_back(place.string());
  fail(ErrorCode::kData, annotations, ": its image '", *image, "' is in none of ",
       join(looked, ", "), "; --images names the folder");
}

bool has_word(const std::string& path, std::initializer_list<const char*> words) {
  const std::string name = data::lowercase(fs::path(path).filename().string());
  return std::any_of(words.begin(), words.end(),
                     [&](const char* word) { return name.find(word) != std::string::npos; });
}

/// A COCO file, or those of a folder: which one trains and which one validates follows from names.
BoxParts coco_parts(const RecipeRequest& request, std::vector<std::string> files) {
  std::erase_if(files, [](const std::string& file) { return !first_image(file); });
  if (files.empty())
    fail(ErrorCode::kData, request.data,
         ": found no COCO file (.json with images, annotations and categories)");
  BoxParts out;
  std::string train = files[0], valid;
  if (files.size() > 1) {
    std::vector<std::string> training, validating, names;
    for (const std::string& file : files) {
      names.push_back(fs::path(file).filename().string());
      if (has_word(file, {"caption", "keypoint", "panoptic"})) continue;
      if (has_word(file, {"train"})) training.push_back(file);
      if (has_word(file, {"val", "valid"})) validating.push_back(file);
    }
    if (training.size() != 1)
      fail(ErrorCode::kData, request.data, ": has several COCO files (", join(names, ", "),
           "); name the one to train on: --data ", files[0]);
    train = training[0];
    if (validating.size() == 1) valid = validating[0];
    out.found.push_back(
        str("of ", join(names, ", "), ": ", fs::path(train).filename().string(), " trains",
            valid.empty() ? std::string()
                          : str(", ", fs::path(valid).filename().string(), " validates")));
  }
  out.train.annotations = train;
  out.train.images = images_of(request, train);
  if (valid.empty()) return out;
  out.valid = data::BoxOptions();
  out.valid->annotations = valid;
  out.valid->images = images_of(request, valid);
  return out;
}

/// Names of `names:`, a list or a map by number.
std::vector<std::string> yolo_names(const config::Node& names) {
  std::vector<std::string> out;
  for (const config::Node& item : names.items) out.push_back(item.text);
  std::map<int64_t, std::string> numbered;
  for (const config::Entry& e : names.entries)
    if (const auto number = e.key.try_int()) numbered[*number] = e.value.text;
  for (const auto& [number, name] : numbered) {
    if (number < 0 || number > 100000) continue;
    while (static_cast<int64_t>(out.size()) < number) out.push_back(str("class_", out.size()));
    out.push_back(name);
  }
  return out;
}

/// The names of classes where no file has them: numbers up to the largest in the text files.
std::vector<std::string> counted_classes(const std::string& labels) {
  constexpr int64_t kMax = 10000;
  int64_t largest = 0;
  if (is_directory(labels))
    for (const std::string& name : list_directory(labels)) {
      if (!name.ends_with(".txt") || name == "classes.txt") continue;
      const auto file = MappedFile::open(join_path(labels, name));
      std::string_view text = file->view();
      while (!text.empty()) {
        const size_t end = text.find('\n');
        const std::string_view line = trim(text.substr(0, end));
        int64_t number = 0;
        if (formats::parse_integer(line.substr(0, line.find_first_of(" \t")), number) &&
            number < kMax)
          largest = std::max(largest, number);
        text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
      }
    }
  std::vector<std::string> out;
  for (int64_t c = 0; c <= largest; ++c) out.push_back(str("class_", c));
  return out;
}

/// The text files of a folder of images.
std::string labels_of(const fs::path& images) {
  if (images.filename() == "images") return (images.parent_path() / "labels").string();
  return (images.parent_path().parent_path() / "labels" / images.filename()).string();
}

/// The folder with images of a part of YOLO's data, by the usual layouts; "" if there is none.
std::string yolo_images(const fs::path& root, std::initializer_list<const char*> names) {
  for (const char* name : names)
    for (const fs::path& each : {root / "images" / name, root / name / "images"})
      if (is_directory(each.string()) && is_directory(labels_of(each))) return each.string();
  return "";
}

BoxParts yolo_parts(const RecipeRequest& request, const fs::path& root, const std::string& yaml) {
  std::vector<std::string> names;
  std::string train, valid;
  fs::path base = root;
  if (!yaml.empty()) {
    config::Diagnostics diagnostics;
    const config::Node document = config::read_document(yaml, diagnostics);
    diagnostics.raise();
    if (const config::Node* node = document.find("names")) names = yolo_names(*node);
    if (const config::Node* node = document.find("path"); node && node->is_scalar()) {
      const fs::path stated = fs::path(yaml).parent_path() / node->text;
      if (is_directory(stated.string())) base = stated;
    }
    const auto folder_of = [&](const char* key) -> std::string {
      const config::Node* node = document.find(key);
      if (!node || !node->is_scalar() || node->text.empty()) return "";
      // Roboflow writes ../train/images for what lies next to the file.
      std::string text = node->text;
      for (const fs::path& from : {base, root})
        for (std::string rest = text;; rest = rest.substr(3)) {
          for (const fs::path& each : {from / rest, from / rest / "images"})
            if (is_directory(each.string()) && is_directory(labels_of(each.lexically_normal())))
              return each.lexically_normal().string();
          if (!rest.starts_with("../")) break;
        }
      fail(ErrorCode::kData, yaml, ": ", key, ": found no folder of images '", text,
           "' with its folder of labels");
    };
    train = folder_of("train");
    valid = folder_of("val");
    if (valid == train) valid.clear();
  }
  if (train.empty()) train = yolo_images(root, {"train", "."});
  if (train.empty() && is_directory((root / "images").string()) &&
      is_directory((root / "labels").string()))
    train = (root / "images").string();
  if (train.empty())
    fail(ErrorCode::kData, request.data,
         ": expected a COCO file (.json) or folders `images` and `labels` of YOLO's form");
  if (valid.empty() && yaml.empty()) valid = yolo_images(root, {"val", "valid"});
  if (names.empty())
    for (const fs::path& each : {root / "classes.txt", fs::path(labels_of(train)) / "classes.txt"})
      if (names.empty() && file_exists(each.string())) {
        const std::string text = read_file(each.string(), 1 << 24, ErrorCode::kData);
        for (size_t at = 0; at < text.size();) {
          const size_t end = std::min(text.find('\n', at), text.size());
          if (const auto name = trim(std::string_view(text).substr(at, end - at)); !name.empty())
            names.emplace_back(name);
          at = end + 1;
        }
      }
  BoxParts out;
  if (names.empty()) {
    names = counted_classes(labels_of(train));
    out.found.push_back("no file names the classes: they are called class_0, class_1, …");
  }
  out.train.format = data::BoxOptions::Format::kYolo;
  out.train.images = train;
  out.train.classes = names;
  if (!valid.empty()) {
    out.valid = out.train;
    out.valid->images = valid;
  }
  return out;
}

BoxParts box_parts(const RecipeRequest& request) {
  const std::string& data = request.data;
  if (data.ends_with(".yaml") || data.ends_with(".yml")) {
    const fs::path folder = fs::path(data).parent_path();
    return yolo_parts(request, folder.empty() ? "." : folder, data);
  }
  if (!is_directory(data)) return coco_parts(request, {data});
  std::vector<std::string> files;
  for (const fs::path& folder : {fs::path(data), fs::path(data) / "annotations"})
    if (is_directory(folder.string()))
      for (const std::string& name : list_directory(folder.string()))
        if (name.ends_with(".json")) files.push_back((folder / name).string());
  std::erase_if(files, [](const std::string& file) { return !first_image(file); });
  if (!files.empty()) return coco_parts(request, files);
  for (const char* name : {"data.yaml", "data.yml", "dataset.yaml"})
    if (file_exists(join_path(data, name))) return yolo_parts(request, data, join_path(data, name));
  return yolo_parts(request, data, "");
}

}  // namespace

RecipeResult detection(const RecipeRequest& request) {
  const BoxParts parts = box_parts(request);
  const auto open = [](const data::BoxOptions& boxes) {
    data::DatasetOptions options;
    options.source = boxes;
    return data::make_dataset(options);
  };
  const data::DatasetPtr dataset = open(parts.train);
  const int64_t count = dataset->fields()[2].class_count;
  RecipeResult out;
  out.found = {str(dataset->size(), " images with boxes of ", count, " classes")};
  if (parts.valid) out.found.push_back(str(open(*parts.valid)->size(), " images to validate on"));
  out.found.insert(out.found.end(), parts.found.begin(), parts.found.end());
  for (const std::string& line : dataset->warnings()) out.found.push_back(line);
  const bool is_coco = parts.train.format == data::BoxOptions::Format::kCoco;
  const auto source = [&](const data::BoxOptions& boxes, const char* part) {
    std::vector<std::string> names;
    for (const std::string& name : boxes.classes) names.push_back(yaml_text(name));
    return str(
        "{",
        is_coco ? str("kind: coco, annotations: ", path_from_config(request, boxes.annotations))
                : std::string("kind: yolo"),
        ", images: ", path_from_config(request, boxes.images),
        is_coco ? "" : str(", classes: [", join(names, ", "), "]"),
        parts.valid ? std::string() : str(", split: {train: 0.8, valid: 0.2}, part: ", part), "}");
  };
  const int64_t trained = parts.valid ? dataset->size() : dataset->size() * 4 / 5;
  out.config =
      fill_template(request, {{"count", str(count)},
                              {"epochs", str(epochs_for(trained, 100000, 10))},
                              {"train", source(parts.train, "train")},
                              {"valid", source(parts.valid.value_or(parts.train), "valid")}});
  return out;
}

namespace {

/// The classes that the stored values of masks stand for.
struct MaskProfile {
  int64_t classes = 0;
  std::string keys = {};   ///< of the field, as YAML
  std::string found = {};  ///< for the user
};

MaskProfile profile_masks(const data::Dataset& dataset, const std::string& path) {
  constexpr int64_t kMaxMasks = 1000, kMaxClasses = 256, kNoClass = 255;
  std::set<int64_t> values;
  data::Sample sample;
  for (int64_t i = 0; i < std::min(dataset.size(), kMaxMasks); ++i) {
    dataset.read(i, {}, sample);
    int64_t last = -1;
    for (int64_t p = 0; p < sample[0].size(); ++p) {
      const auto value = sample[0].data<int64_t>()[p];
      if (value != last) values.insert(last = value);
    }
    if (static_cast<int64_t>(values.size()) > kMaxClasses)
      fail(ErrorCode::kData, path, ": the masks have more than ", kMaxClasses, " values");
  }
  const int64_t largest = values.empty() ? 0 : *values.rbegin();
  std::vector<std::string> shown;
  for (const int64_t value : values) {
    if (shown.size() == 10) {
      shown.emplace_back("…");
      break;
    }
    shown.push_back(std::to_string(value));
  }
  MaskProfile out;
  out.found = str("values ", join(shown, ", "));
  std::set<int64_t> own = values;
  const bool ignores = values.contains(kNoClass) && values.size() > 2;
  if (ignores) own.erase(kNoClass);
  const int64_t most = own.empty() ? 0 : *own.rbegin();
  // Classes that are numbered, with some that do not occur in these masks.
  const bool numbered = most < 2 * static_cast<int64_t>(own.size()) + 2 && most < kNoClass;
  if (numbered) {
    out.classes = std::max<int64_t>(most + 1, 2);
    if (!ignores) return out;
    std::vector<std::string> names;
    for (int64_t c = 0; c < out.classes; ++c) names.push_back(str(c, ": class_", c));
    out.keys = str(", values: {", join(names, ", "), "}, ignore: [", kNoClass, "]");
    out.found += str(": ", out.classes, " classes, and ", kNoClass, " for pixels without one");
    return out;
  }
  std::vector<std::string> names;
  for (const int64_t value : values) {
    const bool is_pair = values.size() == 2 && *values.begin() == 0;
    names.push_back(str(value, ": ",
                        !is_pair     ? str("value_", value)
                        : value == 0 ? "background"
                                     : "foreground"));
  }
  out.classes = static_cast<int64_t>(values.size());
  out.keys = str(", values: {", join(names, ", "), "}");
  out.found += str(": ", out.classes, " classes");
  if (largest >= kMaxClasses) out.found += " (masks of 16 bits)";
  return out;
}

}  // namespace

RecipeResult segmentation(const RecipeRequest& request) {
  const CsvProfile profile = inspect_csv(request);
  const size_t image = image_column(profile, request),
               mask = image_column(profile, request, image + 1);
  data::CsvField field;
  field.name = "mask", field.columns = {profile.columns[mask].name};
  field.kind = data::ColumnKind::kMask;
  const data::DatasetPtr dataset = open_table(profile, {field});
  const MaskProfile masks = profile_masks(*dataset, request.data);
  RecipeResult out;
  out.found = {str(profile.rows, " images in '", profile.columns[image].name, "', masks in '",
                   profile.columns[mask].name, "' with ", masks.found)};
  out.found.insert(out.found.end(), profile.notes.begin(), profile.notes.end());
  out.config = fill_template(request, {{"count", str(masks.classes)},
                                       {"epochs", str(epochs_for(profile.rows * 4 / 5, 64000, 8))},
                                       {"image", yaml_text(profile.columns[image].name)},
                                       {"mask", yaml_text(profile.columns[mask].name)},
                                       {"mask_values", masks.keys},
                                       {"block_format", profile.block_keys()}});
  return out;
}

RecipeResult text_lines(const RecipeRequest& request) {
  const CsvProfile profile = inspect_csv(request);
  const size_t image = image_column(profile, request);
  const size_t text = image == 0 ? 1 : 0;
  data::CsvField read, picture;
  read.name = "text", read.columns = {profile.columns[text].name};
  read.kind = data::ColumnKind::kText, read.tokens = data::TokenKind::kCharacters;
  read.lowercase = false;
  picture.name = "image", picture.columns = {profile.columns[image].name};
  picture.kind = data::ColumnKind::kImage, picture.channels = 1;
  const data::DatasetPtr dataset = open_table(profile, {read, picture});
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
  out.found = {str(profile.rows, " lines with up to ", longest, " characters, ", characters - 1,
                   " different ones; images are resized to ", rows, "x", columns)};
  out.config = fill_template(request, {{"count", str(characters - 1)},
                                       {"epochs", str(epochs_for(profile.rows * 9 / 10, 55000, 5))},
                                       {"characters", str(characters)},
                                       {"columns", str(columns)},
                                       {"longest", str(longest)},
                                       {"image", yaml_text(profile.columns[image].name)},
                                       {"block_format", profile.block_keys()},
                                       {"flow_format", profile.flow_keys()},
                                       {"text", yaml_text(profile.columns[text].name)}});
  out.found.insert(out.found.end(), profile.notes.begin(), profile.notes.end());
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

RecipeResult unlabeled_images(const RecipeRequest& request) {
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
    const ImageProfile profile = profile_images(*dataset);
    if (is_full) side = profile.side;
    const int64_t classes = has_classes ? dataset->fields()[1].class_count : 0;
    out.found = {str(dataset->size(), " images",
                     has_classes ? str(" in ", classes, " classes") : "", ", resized to ", side,
                     "x", side, profile.is_gray ? ", gray" : "")};
    images = dataset->size() * 9 / 10;
    values["channels"] = profile.is_gray ? "1" : "3", values["side"] = str(side),
    values["count"] = str(classes);
    const auto part = [&](const char* name) {
      return str("  ", name, ": {kind: images, path: ", data_path(request),
                 profile.is_gray ? ", channels: 1" : "",
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
