// Datasets of image files: images, coco and yolo.

#include "data/config/dataset_config.h"
#include "data/dataset_kind.h"

namespace paddle::data {

using config::Node;
using config::Schema;
using config::Section;
using config::Spec;

namespace {

Spec channels_key() {
  return Spec::integer().at_least(1).at_most(3).fallback("3").doc("1: grayscale, 3: RGB");
}
Spec image_dtype_key() {
  return Spec::word({"uint8", "uint16"}).fallback("uint8").doc("dtype of the field");
}
Spec reduce_key() {
  return Spec::boolean().fallback("false").doc("read 16-bit images as 8-bit ones");
}
DType read_image_dtype(const Section& s) {
  return s.text("dtype") == "uint16" ? DType::kU16 : DType::kU8;
}

Schema images_keys() {
  Schema s;
  const Spec words = Spec::list(Spec::text()).fallback("[]");
  s.add("path", Spec::text().doc("file or folder"))
      .add("files", Spec(words).doc("single files instead of a folder"))
      .add("channels", channels_key())
      .add("image_field", Spec::text().fallback("image").doc("name of the field with the image"))
      .add("label_field", Spec::text().fallback("label").doc("name of the field with the class"))
      .add("classes", Spec(words).doc("class names in the order of their numbers"))
      .add("dtype", image_dtype_key())
      .add("reduce_16_bit", reduce_key());
  return s;
}

DatasetSource read_images(const Section& s) {
  ImageFolderOptions i;
  i.path = path_of(s, "path");
  if (s.has("files"))
    for (const Node& n : s.at("files").items) i.files.push_back(resolved_path(n));
  i.channels = static_cast<int>(s.integer("channels"));
  i.image_field = s.text("image_field");
  i.label_field = s.text("label_field");
  i.classes = s.texts("classes");
  i.dtype = read_image_dtype(s);
  i.reduce_16_bit = s.boolean("reduce_16_bit");
  if (i.path.empty() == i.files.empty())
    throw Error(ErrorCode::kConfig, "images: give either path or files", s.node().location());
  return i;
}

void add_box_keys(Schema& s) {
  s.add("channels", channels_key())
      .add("dtype", image_dtype_key())
      .add("reduce_16_bit", reduce_key())
      .add("max_boxes", Spec::integer().at_least(1).at_most(1 << 16).fallback("100").doc(
                            "most boxes of an image; more make it a bad sample"));
}

Schema coco_keys() {
  Schema s;
  s.add("annotations", Spec::text().required().doc("JSON file of images, boxes and categories"))
      .add("images", Spec::text().doc("folder of the images; default: that of the JSON file"));
  add_box_keys(s);
  return s;
}

Schema yolo_keys() {
  Schema s;
  s.add("images", Spec::text().required().doc("folder of the images"))
      .add("labels", Spec::text().doc("folder of the text files; default: `labels` for `images`"))
      .add("classes",
           Spec::list(Spec::text()).required().doc("class names in the order of their numbers"));
  add_box_keys(s);
  return s;
}

BoxOptions read_boxes(const Section& s) {
  BoxOptions b;
  b.images = path_of(s, "images");
  b.channels = static_cast<int>(s.integer("channels"));
  b.dtype = read_image_dtype(s);
  b.reduce_16_bit = s.boolean("reduce_16_bit");
  b.max_boxes = s.integer("max_boxes");
  return b;
}

}  // namespace

DatasetKind images_kind() {
  return {
      .name = "images", .keys = images_keys, .read = read_images, .path_keys = {"path", "files"}};
}

DatasetKind coco_kind() {
  return {.name = "coco",
          .keys = coco_keys,
          .read = [](const Section& s) -> DatasetSource {
            BoxOptions b = read_boxes(s);
            b.annotations = path_of(s, "annotations");
            return b;
          },
          .path_keys = {"annotations", "images"}};
}

DatasetKind yolo_kind() {
  return {.name = "yolo",
          .keys = yolo_keys,
          .read = [](const Section& s) -> DatasetSource {
            BoxOptions b = read_boxes(s);
            b.format = BoxOptions::Format::kYolo;
            b.labels = path_of(s, "labels");
            b.classes = s.texts("classes");
            return b;
          },
          .path_keys = {"images", "labels"}};
}

}  // namespace paddle::data
