// Folders of JPEG and PNG files, a sub-folder for each class.

#include <algorithm>
#include <filesystem>

#include "base/files.h"
#include "data/sources.h"
#include "formats/image.h"

namespace paddle::data {
namespace {

bool is_image(std::string name) {
  std::transform(name.begin(), name.end(), name.begin(),
                 [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; });
  return !name.starts_with('.') &&
         (name.ends_with(".jpg") || name.ends_with(".jpeg") || name.ends_with(".png"));
}

class ImageFolder : public Dataset {
 public:
  explicit ImageFolder(const ImageFolderOptions& options) : options_(options) {
    if (options.channels != 1 && options.channels != 3)
      fail(ErrorCode::kConfig, "images: channels is ", options.channels, ", 1 or 3 is needed");
    Field image;
    image.name = options.image_field;
    image.dtype = DType::kU8;
    image.shape = {options.channels, -1, -1};
    fields_.push_back(std::move(image));
    if (!options.files.empty()) {
      for (const std::string& path : options.files) items_.push_back({path, 0});
      return;
    }
    std::vector<std::string> classes = options.classes;
    const auto entries = list_directory(options.path);
    for (const std::string& name : entries) {
      if (name.starts_with('.') || !is_directory(join_path(options.path, name))) continue;
      if (options.classes.empty())
        classes.push_back(name);
      else if (options.inherited_classes &&
               std::find(classes.begin(), classes.end(), name) == classes.end())
        fail(ErrorCode::kData, join_path(options.path, name), ": the training data has no class '",
             name, "'", did_you_mean(name, classes), "; it has ", join(classes, ", "));
    }
    const bool flat =
        options.inherited_classes && std::none_of(classes.begin(), classes.end(), [&](auto& name) {
          return is_directory(join_path(options.path, name));
        });
    if (classes.empty() || flat) {
      add(options.path, 0);
    } else {
      for (size_t i = 0; i < classes.size(); ++i)
        if (!options.inherited_classes || is_directory(join_path(options.path, classes[i])))
          add(join_path(options.path, classes[i]), static_cast<int64_t>(i));
      Field label;
      label.name = options.label_field;
      label.dtype = DType::kI64;
      label.class_count = static_cast<int64_t>(classes.size());
      label.classes = std::move(classes);
      fields_.push_back(std::move(label));
    }
    if (items_.empty())
      fail(ErrorCode::kData, options.path, ": no .jpg, .jpeg or .png files in it or its folders");
  }
  int64_t size() const override { return static_cast<int64_t>(items_.size()); }
  const std::vector<Field>& fields() const override { return fields_; }
  void read(int64_t index, const ReadContext&, Sample& out) const override {
    const Item& item = items_[static_cast<size_t>(index)];
    out.resize(fields_.size());
    const formats::Image image = formats::read_image(item.path, options_.channels);
    const int64_t plane = image.height * image.width, channels = image.channels;
    out[0].reset(DType::kU8, Dims{channels, image.height, image.width});
    uint8_t* to = out[0].data<uint8_t>();
    for (int64_t c = 0; c < channels; ++c)
      for (int64_t i = 0; i < plane; ++i)
        to[c * plane + i] = image.pixels[static_cast<size_t>(i * channels + c)];
    if (fields_.size() > 1) {
      out[1].reset(DType::kI64, Dims{});
      out[1].data<int64_t>()[0] = item.label;
    }
  }
  std::string place(int64_t index, int64_t, int64_t) const override {
    return items_[static_cast<size_t>(index)].path;
  }
  std::vector<Learnt> learnt() const override {
    if (fields_.size() < 2) return {};
    return {{.field = fields_[1].name, .tokens = fields_[1].classes}};
  }
  std::vector<std::string> paths() const override {
    const std::string& path = options_.files.empty() ? options_.path : options_.files[0];
    return {std::filesystem::absolute(path).lexically_normal().string()};
  }

 private:
  struct Item {
    std::string path;
    int64_t label;
  };
  void add(const std::string& folder, int64_t label) {
    for (const std::string& name : list_directory(folder))
      if (is_image(name)) items_.push_back({join_path(folder, name), label});
  }

  ImageFolderOptions options_;
  std::vector<Field> fields_;
  std::vector<Item> items_;
};

}  // namespace

DatasetPtr make_image_folder(const ImageFolderOptions& options) {
  return std::make_shared<ImageFolder>(options);
}

}  // namespace paddle::data
