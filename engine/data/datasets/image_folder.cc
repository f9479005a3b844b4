// Folders of image files, a sub-folder for each class.

#include <algorithm>
#include <filesystem>
#include <map>

#include "base/files.h"
#include "data/datasets/sources.h"
#include "data/sources/cell_values.h"
#include "data/sources/read_warnings.h"
#include "formats/image.h"

namespace paddle::data {
namespace {

/// Links may form a loop of folders.
constexpr int kMaxFolderDepth = 32;

std::string lower_extension(const std::string& name) {
  std::string out = std::filesystem::path(name).extension().string();
  std::transform(out.begin(), out.end(), out.begin(),
                 [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; });
  return out;
}

bool is_hidden(const std::string& name) { return name.starts_with('.'); }

/// Images of a folder, and the files that are not read, by extension.
struct Listing {
  std::vector<std::string> images = {};
  std::map<std::string, std::vector<std::string>> others = {};

  void add_file(const std::string& folder, const std::string& name) {
    if (formats::has_image_ending(name))
      images.push_back(join_path(folder, name));
    else
      others[lower_extension(name)].push_back(join_path(folder, name));
  }
  /// Files of the folder first, then those of its sub-folders, each sorted by name.
  void add_folder(const std::string& folder, int depth = 0) {
    if (depth > kMaxFolderDepth)
      fail(ErrorCode::kData, folder, ": more than ", kMaxFolderDepth, " folders inside each other");
    std::vector<std::string> folders;
    for (const std::string& name : list_directory(folder)) {
      if (is_hidden(name)) continue;
      if (is_directory(join_path(folder, name)))
        folders.push_back(join_path(folder, name));
      else
        add_file(folder, name);
    }
    for (const std::string& each : folders) add_folder(each, depth + 1);
  }
};

class ImageFolder : public Dataset {
 public:
  explicit ImageFolder(const ImageFolderOptions& options) : options_(options) {
    if (options.channels != 1 && options.channels != 3)
      fail(ErrorCode::kConfig, "images: channels is ", options.channels, ", expected 1 or 3");
    if (options.dtype != DType::kU8 && options.dtype != DType::kU16)
      fail(ErrorCode::kConfig, "images: dtype is ", text(options.dtype),
           ", expected uint8 or uint16");
    if (options.dtype == DType::kU16 && options.reduce_16_bit)
      fail(ErrorCode::kConfig, "images: `reduce_16_bit` has no effect with `dtype: uint16`");
    depth_ = options.dtype == DType::kU16 ? formats::SampleDepth::kSixteen
             : options.reduce_16_bit      ? formats::SampleDepth::kReduced
                                          : formats::SampleDepth::kEight;
    Field image;
    image.name = options.image_field;
    image.dtype = options.dtype;
    image.kind = FieldKind::kImage;
    image.shape = {options.channels, -1, -1};
    fields_.push_back(std::move(image));
    if (options.files.empty())
      open_folder();
    else
      for (const std::string& path : options.files) items_.push_back({path, 0});
  }
  int64_t size() const override { return static_cast<int64_t>(items_.size()); }
  const std::vector<Field>& fields() const override { return fields_; }
  void read(int64_t index, const ReadContext&, Sample& out) const override {
    const Item& item = items_[static_cast<size_t>(index)];
    out.resize(fields_.size());
    const formats::Image image = formats::read_image(item.path, options_.channels, depth_);
    if (!image.warning.empty()) warnings_.add(item.path, image.warning);
    store_image(image, out[0]);
    if (fields_.size() > 1) {
      out[1].reset(DType::kI64, Dims{});
      out[1].data<int64_t>()[0] = item.label;
    }
  }
  std::string location(int64_t index, int64_t, int64_t) const override {
    return items_[static_cast<size_t>(index)].path;
  }
  std::optional<int64_t> class_of(int64_t index, int64_t field) const override {
    if (field != 1) return std::nullopt;
    return items_[static_cast<size_t>(index)].label;
  }
  std::vector<Fitted> fitted() const override {
    if (fields_.size() < 2) return {};
    Fitted classes;
    classes.field = fields_[1].name;
    classes.tokens = fields_[1].classes;
    return {classes};
  }
  std::vector<std::string> paths() const override {
    const std::string& path = options_.files.empty() ? options_.path : options_.files[0];
    return {std::filesystem::absolute(path).lexically_normal().string()};
  }
  std::vector<std::string> skipped_files() const override { return skipped_files_; }
  std::vector<std::string> warnings() const override { return warnings_.lines(); }

 private:
  struct Item {
    std::string path;
    int64_t label;
  };

  std::string folder_of(const std::string& name) const { return join_path(options_.path, name); }

  /// The class folders to read, in order; empty for a folder of images without labels.
  std::vector<std::string> class_folders() const {
    std::vector<std::string> folders = options_.classes;
    if (folders.empty())
      for (const std::string& name : list_directory(options_.path))
        if (!is_hidden(name) && is_directory(folder_of(name))) folders.push_back(name);
    const auto& known = options_.known_classes;
    if (known.empty()) return folders;
    for (const std::string& name : folders)
      if (std::find(known.begin(), known.end(), name) == known.end())
        fail(ErrorCode::kData, folder_of(name), ": the training data has no class '", name, "'",
             did_you_mean(name, known), "; it has ", join(known, ", "));
    return folders;
  }

  void open_folder() {
    const std::vector<std::string> folders = class_folders();
    Listing top;
    for (const std::string& name : list_directory(options_.path))
      if (!is_hidden(name) && !is_directory(folder_of(name))) top.add_file(options_.path, name);
    if (folders.empty()) {
      for (const std::string& path : top.images) items_.push_back({path, 0});
    } else {
      for (const std::string& path : top.images)
        top.others["outside of class folders"].push_back(path);
      add_classes(folders, top);
    }
    for (const auto& [extension, files] : top.others)
      skipped_files_.push_back(
          str(files.size(), files.size() == 1 ? " file" : " files",
              extension.empty() ? std::string(" without extension") : " " + extension,
              " not read, such as ", files[0]));
    if (items_.empty())
      fail(ErrorCode::kData, options_.path, ": no ", formats::kImageEndings,
           " files in it or its folders",
           skipped_files_.empty() ? "" : " (" + join(skipped_files_, "; ") + ")");
  }

  void add_classes(const std::vector<std::string>& folders, Listing& all) {
    const auto& names = options_.known_classes.empty() ? folders : options_.known_classes;
    for (const std::string& name : folders) {
      if (invalid_utf8(name))
        fail(ErrorCode::kData, folder_of(printable(name)), ": the name of the class is not UTF-8");
      Listing images;
      images.add_folder(folder_of(name));
      if (images.images.empty() && options_.known_classes.empty())
        fail(ErrorCode::kData, folder_of(name), ": no ", formats::kImageEndings,
             " files in this class folder",
             images.others.empty() ? "" : " (it has " + images.others.begin()->first + " files)",
             "; remove it, or name the class folders with `classes`");
      const int64_t label = std::find(names.begin(), names.end(), name) - names.begin();
      for (const std::string& path : images.images) items_.push_back({path, label});
      for (auto& [extension, files] : images.others) {
        auto& to = all.others[extension];
        to.insert(to.end(), files.begin(), files.end());
      }
    }
    Field label;
    label.name = options_.label_field;
    label.dtype = DType::kI64;
    label.class_count = static_cast<int64_t>(names.size());
    label.classes = names;
    fields_.push_back(std::move(label));
  }

  ImageFolderOptions options_;
  formats::SampleDepth depth_ = formats::SampleDepth::kEight;
  std::vector<Field> fields_;
  std::vector<Item> items_;
  std::vector<std::string> skipped_files_;
  mutable ReadWarnings warnings_{"files"};
};

}  // namespace

DatasetPtr make_image_folder(const ImageFolderOptions& options) {
  return std::make_shared<ImageFolder>(options);
}

}  // namespace paddle::data
