// Datasets of arrays, and those that are drawn here: idx, npy, npz, hdf5, digits, random.

#include "data/config/dataset_config.h"
#include "data/config/transform_config.h"
#include "data/dataset_kind.h"

namespace paddle::data {

using config::Schema;
using config::Section;
using config::Spec;

namespace {

void add_image_and_label(Schema& s) {
  s.add("image_field", Spec::text().fallback("image").doc("name of the field with the image"))
      .add("label_field", Spec::text().fallback("label").doc("name of the field with the class"));
}

Spec arrays_key(const char* doc) { return Spec::map_of(Spec::text()).fallback("{}").doc(doc); }

Schema random_field() {
  Schema s;
  s.add("name", Spec::text().required().doc("name of the field"));
  s.add("dtype", Spec::text().fallback("float32").doc("dtype of the field"));
  s.add("shape", Spec::list(Spec::integer().at_least(0)).fallback("[]").doc("shape of one sample"));
  s.add("low", Spec::real().doc("smallest value"));
  s.add("high", Spec::real().doc("largest value"));
  return s;
}

Schema digits_keys() {
  Schema s;
  s.add("size", Spec::integer().at_least(1).fallback("20000").doc("samples"))
      .add("seed", Spec::integer().at_least(0).fallback("0").doc("of the samples"));
  add_image_and_label(s);
  return s;
}

Schema idx_keys() {
  Schema s;
  s.add("images", Spec::text().required().doc("file of images (IDX, also gzipped)"))
      .add("labels", Spec::text().doc("file of labels"));
  add_image_and_label(s);
  s.add("classes",
        Spec::list(Spec::text()).fallback("[]").doc("class names in the order of their numbers"));
  return s;
}

Schema npy_keys() {
  Schema s;
  s.add("files", Spec::map_of(Spec::text()).required().doc("single files instead of a folder"));
  return s;
}

Schema npz_keys() {
  Schema s;
  s.add("path", Spec::text().required().doc("file or folder"))
      .add("arrays", arrays_key("fields by the names of the arrays in the file"));
  return s;
}

Schema hdf5_keys() {
  Schema s;
  s.add("path", Spec::text().required().doc("HDF5 file"))
      .add("arrays", arrays_key("fields by the names of the datasets in the file"));
  return s;
}

Schema random_keys() {
  Schema s;
  s.add("size", Spec::integer().at_least(1).fallback("1024").doc("samples"))
      .add("seed", Spec::integer().at_least(0).fallback("0").doc("of the samples"))
      .add("fields",
           Spec::list(Spec::map(random_field())).required().doc("fields made of columns"));
  return s;
}

DatasetSource read_random(const Section& s) {
  RandomOptions r;
  r.size = s.integer("size");
  r.seed = static_cast<uint64_t>(s.integer("seed"));
  for (const Section& f : s.sections("fields")) {
    RandomField field;
    field.name = f.text("name");
    field.dtype = dtype_of_key(f, "dtype");
    field.shape = f.integers("shape");
    if (f.has("low")) field.low = f.real("low");
    if (f.has("high")) field.high = f.real("high");
    r.fields.push_back(field);
  }
  return r;
}

}  // namespace

DatasetKind digits_kind() {
  return {.name = "digits",
          .keys = digits_keys,
          .read = [](const Section& s) -> DatasetSource {
            return DigitsOptions{s.integer("size"), static_cast<uint64_t>(s.integer("seed")),
                                 s.text("image_field"), s.text("label_field")};
          },
          .path_keys = {}};
}

DatasetKind idx_kind() {
  return {.name = "idx",
          .keys = idx_keys,
          .read = [](const Section& s) -> DatasetSource {
            return IdxOptions{path_of(s, "images"), path_of(s, "labels"), s.text("image_field"),
                              s.text("label_field"), s.texts("classes")};
          },
          .path_keys = {"images", "labels"}};
}

DatasetKind npy_kind() {
  return {.name = "npy",
          .keys = npy_keys,
          .read = [](const Section& s) -> DatasetSource {
            return NpyOptions{text_map(s, "files", true)};
          },
          .path_keys = {"files"}};
}

DatasetKind npz_kind() {
  return {.name = "npz", .keys = npz_keys, .read = [](const Section& s) -> DatasetSource {
            return NpzOptions{path_of(s, "path"), text_map(s, "arrays", false)};
          }};
}

DatasetKind hdf5_kind() {
  return {.name = "hdf5", .keys = hdf5_keys, .read = [](const Section& s) -> DatasetSource {
            return Hdf5Options{path_of(s, "path"), text_map(s, "arrays", false)};
          }};
}

DatasetKind random_kind() {
  return {.name = "random", .keys = random_keys, .read = read_random, .path_keys = {}};
}

}  // namespace paddle::data
