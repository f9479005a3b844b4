// Images with boxes, from COCO's JSON or YOLO's text files. Annotations that cannot be used are
// counted by reason, never dropped without a word.

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <map>
#include <tuple>

#include <nlohmann/json.hpp>

#include "base/files.h"
#include "data/datasets/sources.h"
#include "data/sources/cell_values.h"
#include "data/sources/read_warnings.h"
#include "formats/csv.h"
#include "formats/image.h"

namespace paddle::data {
namespace {

using nlohmann::json;

struct Box {
  double left = 0, top = 0, right = 0, bottom = 0;  ///< pixels; with YOLO shares of the sides
  int64_t label = 0;
};

struct Item {
  std::string path;
  int64_t height = 0, width = 0;  ///< as the file states; 0 if it does not
  std::vector<Box> boxes;
  std::optional<Error> problem = {};  ///< the first annotation that cannot be read
};

class BoxDataset final : public Dataset {
 public:
  explicit BoxDataset(const BoxOptions& options) : options_(options) {
    if (options.channels != 1 && options.channels != 3)
      fail(ErrorCode::kConfig, "channels is ", options.channels, ", expected 1 or 3");
    if (options.dtype != DType::kU8 && options.dtype != DType::kU16)
      fail(ErrorCode::kConfig, "dtype is ", text(options.dtype), ", expected uint8 or uint16");
    if (options.dtype == DType::kU16 && options.reduce_16_bit)
      fail(ErrorCode::kConfig, "`reduce_16_bit` has no effect with `dtype: uint16`");
    depth_ = options.dtype == DType::kU16 ? formats::SampleDepth::kSixteen
             : options.reduce_16_bit      ? formats::SampleDepth::kReduced
                                          : formats::SampleDepth::kEight;
    if (is_coco())
      open_coco();
    else
      open_yolo();
    Field image{.name = options.image_field, .dtype = options.dtype};
    image.shape = {options.channels, -1, -1};
    image.kind = FieldKind::kImage;
    Field boxes{.name = options.box_field, .dtype = DType::kF32};
    boxes.shape = {-1, 4};
    boxes.max_length = options.max_boxes;
    boxes.kind = FieldKind::kBoxes;
    Field labels{.name = options.label_field, .dtype = DType::kI64};
    labels.shape = {-1};
    labels.max_length = options.max_boxes;
    labels.kind = FieldKind::kPerBox;
    labels.class_count = static_cast<int64_t>(classes_.size());
    labels.classes = classes_;
    fields_ = {image, boxes, labels};
  }
  int64_t size() const override { return static_cast<int64_t>(items_.size()); }
  const std::vector<Field>& fields() const override { return fields_; }
  void read(int64_t index, const ReadContext&, Sample& out) const override {
    const Item& item = items_[static_cast<size_t>(index)];
    check_annotations(item);
    const formats::Image image = formats::read_image(item.path, options_.channels, depth_);
    if (!image.warning.empty()) warnings_.add(item.path, image.warning);
    if (item.width > 0 && (item.width != image.width || item.height != image.height))
      fail(ErrorCode::kData, item.path, ": is ", image.width, " x ", image.height,
           " pixels, the annotations say ", item.width, " x ", item.height);
    out.resize(3);
    store_image(image, out[0]);
    const auto width = static_cast<double>(image.width), height = static_cast<double>(image.height);
    std::vector<Box> boxes;
    for (size_t i = 0; i < item.boxes.size(); ++i) {
      const Box box = in_pixels(item.boxes[i], width, height);
      if (is_outside(item, i, box, width, height)) continue;
      boxes.push_back({std::max(box.left, 0.0), std::max(box.top, 0.0), std::min(box.right, width),
                       std::min(box.bottom, height), box.label});
    }
    const auto count = static_cast<int64_t>(boxes.size());
    out[1].reset(DType::kF32, Dims{count, 4});
    out[2].reset(DType::kI64, Dims{count});
    for (size_t i = 0; i < boxes.size(); ++i) {
      float* to = out[1].data<float>() + i * 4;
      to[0] = static_cast<float>(boxes[i].left);
      to[1] = static_cast<float>(boxes[i].top);
      to[2] = static_cast<float>(boxes[i].right);
      to[3] = static_cast<float>(boxes[i].bottom);
      out[2].data<int64_t>()[i] = boxes[i].label;
    }
  }
  void check(int64_t index) const override {
    const Item& item = items_[static_cast<size_t>(index)];
    check_annotations(item);
    if (!file_exists(item.path)) MappedFile::open(item.path);  // rejects it
    // Shares of the sides need no size; the message of `read` has the pixels.
    const bool known = item.width > 0 && item.height > 0;
    if (options_.drops_outside || (is_coco() && !known)) return;
    const auto width = known ? static_cast<double>(item.width) : 1,
               height = known ? static_cast<double>(item.height) : 1;
    for (size_t i = 0; i < item.boxes.size(); ++i)
      is_outside(item, i, in_pixels(item.boxes[i], width, height), width, height);
  }
  std::string location(int64_t index, int64_t, int64_t) const override {
    return items_[static_cast<size_t>(index)].path;
  }
  std::vector<std::string> paths() const override {
    return {std::filesystem::absolute(is_coco() ? options_.annotations : options_.images)
                .lexically_normal()
                .string()};
  }
  std::vector<Fitted> fitted() const override {
    Fitted out;
    out.field = options_.label_field;
    out.tokens = classes_;
    return {out};
  }
  std::vector<std::pair<std::string, std::string>> facts() const override {
    std::map<int64_t, int64_t> counts;
    for (size_t i = 0; i < classes_.size(); ++i) counts[static_cast<int64_t>(i)] = 0;
    int64_t without = 0;
    for (const Item& item : items_) {
      without += item.boxes.empty();
      for (const Box& box : item.boxes) ++counts[box.label];
    }
    std::vector<std::string> shown;
    for (const auto& [label, count] : counts)
      shown.push_back(str(classes_[static_cast<size_t>(label)], " ", count));
    std::vector<std::pair<std::string, std::string>> out = {{"boxes per class", join(shown, ", ")}};
    out.emplace_back("images without boxes", std::to_string(without));
    for (const auto& [reason, count] : left_out_)
      out.emplace_back("annotations left out", str(count, ": ", reason));
    return out;
  }
  std::vector<std::string> skipped_files() const override {
    std::vector<std::string> out;
    for (const auto& [reason, count] : left_out_)
      out.push_back(str(count, " annotations are left out: ", reason));
    return out;
  }
  std::vector<std::string> warnings() const override { return warnings_.lines(); }

 private:
  bool is_coco() const { return options_.format == BoxOptions::Format::kCoco; }

  void check_annotations(const Item& item) const {
    if (item.problem) throw Error(*item.problem);
    if (static_cast<int64_t>(item.boxes.size()) > options_.max_boxes)
      fail(ErrorCode::kData, item.path, ": has ", item.boxes.size(), " boxes, `max_boxes` is ",
           options_.max_boxes);
  }

  Box in_pixels(const Box& box, double width, double height) const {
    if (is_coco()) return box;
    return {box.left * width, box.top * height, box.right * width, box.bottom * height, box.label};
  }

  /// Whether box number `i` is left out of an image of this size. kData for a box outside of the
  /// image, unless `drops_outside`.
  bool is_outside(const Item& item, size_t i, const Box& box, double width, double height) const {
    if (box.left < width && box.top < height && box.right > 0 && box.bottom > 0) return false;
    const std::string what = str("box ", i, " [", box.left, ", ", box.top, ", ", box.right, ", ",
                                 box.bottom, "] is outside of the image of ", width, " x ", height);
    if (!options_.drops_outside) fail(ErrorCode::kData, item.path, ": ", what);
    warnings_.add(item.path, what + "; it is left out");
    return true;
  }

  /// The number of a class by its name; the names of the training data count.
  int64_t class_number(const std::string& name, const std::string& place) {
    const auto& known = options_.known_classes;
    if (!known.empty()) {
      classes_ = known;
      const auto at = std::find(known.begin(), known.end(), name);
      if (at == known.end())
        fail(ErrorCode::kData, place, ": the training data has no class '", name, "'",
             did_you_mean(name, known), "; it has ", join(known, ", "));
      return at - known.begin();
    }
    const auto at = std::find(classes_.begin(), classes_.end(), name);
    if (at != classes_.end())
      fail(ErrorCode::kData, place, ": the class '", name, "' appears twice");
    classes_.push_back(name);
    return static_cast<int64_t>(classes_.size()) - 1;
  }

  void open_coco() {
    const auto file = MappedFile::open(options_.annotations);
    const std::string& path = options_.annotations;
    constexpr int kMaxDepth = 16;
    const auto shallow = [](int depth, json::parse_event_t, json&) { return depth < kMaxDepth; };
    const json root = json::parse(file->view().begin(), file->view().end(), shallow, false);
    if (root.is_discarded() || !root.is_object())
      fail(ErrorCode::kData, path,
           ": is not a JSON object with images, annotations and categories");
    try {
      read_coco(root, path);
    } catch (const json::exception& e) {
      fail(ErrorCode::kData, path, ": is not of COCO's form: ", e.what());
    }
  }

  /// A number, in digits or quotes, or a text; numbers come first, by their value.
  using CocoId = std::tuple<bool, int64_t, std::string>;
  static CocoId coco_id(const json& object, const char* key, const std::string& place) {
    const json* const value = coco_member(object, key, place);
    int64_t number = 0;
    if (value->is_number_integer()) return {false, value->get<int64_t>(), ""};
    if (!value->is_string())
      fail(ErrorCode::kData, place, ".", key, ": expected an integer or a text, found ",
           printable(value->dump().substr(0, 40)));
    const std::string text = value->get<std::string>();
    if (formats::parse_integer(text, number)) return {false, number, ""};
    return {true, 0, text};
  }
  static std::string coco_text(const json& object, const char* key, const std::string& place) {
    const json* const value = coco_member(object, key, place);
    if (!value->is_string())
      fail(ErrorCode::kData, place, ".", key, ": expected a text, found ",
           printable(value->dump().substr(0, 40)));
    return value->get<std::string>();
  }
  static const json* coco_member(const json& object, const char* key, const std::string& place) {
    if (!object.is_object() || !object.contains(key))
      fail(ErrorCode::kData, place, ": expected an object with the key '", key, "'");
    return &object.at(key);
  }

  void read_coco(const json& root, const std::string& path) {
    for (const char* key : {"images", "annotations", "categories"})
      if (!root.contains(key) || !root.at(key).is_array())
        fail(ErrorCode::kData, path, ": expected a list '", key, "'");
    std::map<CocoId, std::string> categories;
    const json& listed = root.at("categories");
    for (size_t i = 0; i < listed.size(); ++i) {
      const std::string place = str(path, ": categories[", i, "]");
      if (!categories.emplace(coco_id(listed[i], "id", place), coco_text(listed[i], "name", place))
               .second)
        fail(ErrorCode::kData, path, ": the category ", listed[i].at("id").dump(),
             " appears twice");
    }
    std::map<CocoId, int64_t> numbers;
    for (const auto& [id, name] : categories) numbers[id] = class_number(name, path);
    const std::string folder = options_.images.empty()
                                   ? std::filesystem::path(path).parent_path().string()
                                   : options_.images;
    std::map<CocoId, size_t> images;
    const json& pictures = root.at("images");
    for (size_t i = 0; i < pictures.size(); ++i) {
      const json& each = pictures[i];
      const std::string place = str(path, ": images[", i, "]");
      Item item;
      item.path = join_path(folder, coco_text(each, "file_name", place));
      item.width = each.value("width", int64_t{0});
      item.height = each.value("height", int64_t{0});
      if (!images.emplace(coco_id(each, "id", place), items_.size()).second)
        fail(ErrorCode::kData, path, ": the image ", each.at("id").dump(), " appears twice");
      items_.push_back(std::move(item));
    }
    if (items_.empty()) fail(ErrorCode::kData, path, ": lists no images");
    const json& annotations = root.at("annotations");
    for (size_t i = 0; i < annotations.size(); ++i) {
      const json& each = annotations[i];
      const std::string place = str(path, ": annotations[", i, "]");
      const auto image = images.find(coco_id(each, "image_id", place));
      const auto category = numbers.find(coco_id(each, "category_id", place));
      if (image == images.end()) {
        ++left_out_["their image is not in the list"];
        continue;
      }
      if (category == numbers.end()) {
        ++left_out_["their category is not in the list"];
        continue;
      }
      if (each.value("iscrowd", 0) != 0) {
        ++left_out_["they are of crowds (iscrowd)"];
        continue;
      }
      const std::vector<double> box = read_bbox(each);
      if (box.empty()) {
        note_problem(
            items_[image->second],
            Error(ErrorCode::kData,
                  str(path, ": the annotation ", each.value("id", json()).dump(),
                      " has a bbox that is not four numbers, of ", items_[image->second].path)));
        continue;
      }
      if (!(box[2] > 0) || !(box[3] > 0)) {
        ++left_out_["their boxes have no area"];
        continue;
      }
      items_[image->second].boxes.push_back(
          {box[0], box[1], box[0] + box[2], box[1] + box[3], category->second});
    }
  }

  /// The four numbers of an annotation; empty if it has others.
  static std::vector<double> read_bbox(const json& annotation) {
    const auto found = annotation.find("bbox");
    if (found == annotation.end() || !found->is_array() || found->size() != 4) return {};
    std::vector<double> out;
    for (const json& number : *found) {
      if (!number.is_number() || !std::isfinite(number.get<double>())) return {};
      out.push_back(number.get<double>());
    }
    return out;
  }

  static void note_problem(Item& item, const Error& problem) {
    if (!item.problem) item.problem = problem;
  }

  void open_yolo() {
    std::vector<int64_t> numbers;
    for (const std::string& name : options_.classes)
      numbers.push_back(class_number(name, "classes"));
    std::string labels = options_.labels;
    if (labels.empty()) {
      const std::filesystem::path images(options_.images);
      const std::filesystem::path beside = images.parent_path() / "labels";
      // images/train has its labels in labels/train.
      labels = images.filename() == "images"
                   ? beside.string()
                   : (images.parent_path().parent_path() / "labels" / images.filename()).string();
    }
    if (!is_directory(labels))
      fail(ErrorCode::kData, labels, ": no such folder of labels; name it with `labels`");
    for (const std::string& name : list_directory(options_.images)) {
      if (name.starts_with('.') || !formats::has_image_ending(name)) continue;
      Item item;
      item.path = join_path(options_.images, name);
      const std::string text =
          join_path(labels, std::filesystem::path(name).stem().string() + ".txt");
      try {
        if (file_exists(text))
          read_yolo(text, numbers, item);
        else
          ++without_labels_;
      } catch (const Error& error) {
        if (error.code() != ErrorCode::kData) throw;
        note_problem(item, error);
      }
      items_.push_back(std::move(item));
    }
    if (items_.empty())
      fail(ErrorCode::kData, options_.images, ": no ", formats::kImageEndings, " files");
    if (without_labels_ == items_.size())
      fail(ErrorCode::kData, labels, ": has no text file for any image of ", options_.images);
  }

  void read_yolo(const std::string& path, const std::vector<int64_t>& numbers, Item& item) {
    const auto file = MappedFile::open(path);
    std::string_view text = file->view();
    for (int line = 1; !text.empty(); ++line) {
      const size_t end = text.find('\n');
      std::string_view rest = trim(text.substr(0, end));
      text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
      if (rest.empty()) continue;
      std::vector<double> values;
      while (!rest.empty()) {
        const size_t blank = rest.find_first_of(" \t");
        double number = 0;
        if (!formats::parse_number(rest.substr(0, blank), number) || !std::isfinite(number))
          throw Error(ErrorCode::kData, "expected numbers: class, x, y, width and height",
                      {path, line});
        values.push_back(number);
        rest = blank == std::string_view::npos ? "" : trim(rest.substr(blank));
      }
      if (values.size() != 5)
        throw Error(
            ErrorCode::kData,
            str("expected class, x, y, width and height, found ", values.size(), " numbers"),
            {path, line});
      if (values[0] < 0 || values[0] >= static_cast<double>(numbers.size()) ||
          values[0] != std::floor(values[0]))
        throw Error(ErrorCode::kData,
                    str("class ", values[0], ", there are ", numbers.size(), " classes"),
                    {path, line});
      if (!(values[3] > 0) || !(values[4] > 0)) {
        ++left_out_["their boxes have no area"];
        continue;
      }
      item.boxes.push_back({values[1] - values[3] / 2, values[2] - values[4] / 2,
                            values[1] + values[3] / 2, values[2] + values[4] / 2,
                            numbers[static_cast<size_t>(values[0])]});
    }
  }

  BoxOptions options_;
  formats::SampleDepth depth_ = formats::SampleDepth::kEight;
  std::vector<Field> fields_;
  std::vector<Item> items_;
  std::vector<std::string> classes_;
  std::map<std::string, int64_t> left_out_;  ///< number of annotations by reason
  size_t without_labels_ = 0;
  mutable ReadWarnings warnings_{"files"};
};

}  // namespace

DatasetPtr make_boxes(const BoxOptions& options) { return std::make_shared<BoxDataset>(options); }

}  // namespace paddle::data
