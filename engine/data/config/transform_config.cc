#include "data/config/transform_config.h"

#include "data/transform_info.h"

namespace paddle::data {
namespace {

using config::Node;
using config::Schema;
using config::Section;
using config::Spec;

/// The doc line of a transform.
const char* doc_of(TransformKind kind) {
  using K = TransformKind;
  switch (kind) {
    case K::kCast:
      return "to another dtype; numbers that do not fit are clamped";
    case K::kScale:
      return "x * factor + offset, as float32";
    case K::kNormalize:
      return "(x - mean) / std by channel or for all, as float32";
    case K::kOneHot:
      return "class indices as one-hot vectors";
    case K::kReshape:
      return "the same elements in another shape";
    case K::kResize:
      return "images of another size";
    case K::kCenterCrop:
      return "the middle of images";
    case K::kRandomCrop:
      return "a random window of images";
    case K::kRandomResizedCrop:
      return "crop of random area and aspect ratio, resized";
    case K::kRandomRotation:
      return "rotated about the center";
    case K::kHorizontalFlip:
      return "random horizontal flip";
    case K::kVerticalFlip:
      return "random vertical flip";
    case K::kPad:
      return "pixels around images";
    case K::kRandomAffine:
      return "random rotation, translation, scale and shear";
    case K::kColorJitter:
      return "random changes of brightness, contrast, saturation and hue";
    case K::kGrayscale:
      return "colors removed at random";
    case K::kGaussianBlur:
      return "blurred at random";
    case K::kGaussianNoise:
      return "noise added";
    case K::kCutout:
      return "a random rectangle filled";
    case K::kRandAugment:
      return "several random augmentations of one magnitude (RandAugment)";
    case K::kTrivialAugment:
      return "one random augmentation of random magnitude (TrivialAugment)";
    case K::kLogMel:
      return "audio as log-mel spectrograms";
    case K::kSpecAugment:
      return "masks random bands of spectrograms (SpecAugment)";
    case K::kOwn:
      break;
  }
  return "";
}

Spec two_numbers(const char* fallback, const char* doc) {
  return Spec::list(Spec::real().above(0)).length(2, 2).fallback(fallback).doc(doc);
}
Spec probability(const char* fallback, const char* doc) {
  return Spec::real().at_least(0).at_most(1).fallback(fallback).doc(doc);
}
Spec outside() { return Spec::real().fallback("0").doc("of pixels that have no source"); }

void add_size(Schema& s) {
  s.add("height", Spec::integer().at_least(1).required().doc("of the result, in pixels"))
      .add("width", Spec::integer().at_least(1).required().doc("of the result, in pixels"));
}
Spec interpolation() {
  return Spec::word({"bilinear", "nearest"}).fallback("bilinear").doc("interpolation");
}

void add_sound_keys(TransformKind kind, Schema& s) {
  if (kind == TransformKind::kLogMel) {
    s.add("sample_rate",
          Spec::integer().at_least(1).at_most(1 << 20).required().doc("samples a second"))
        .add("mels", Spec::integer().at_least(1).at_most(1024).fallback("64").doc("bands"))
        .add("window",
             Spec::integer().at_least(2).at_most(1 << 16).fallback("400").doc("in samples"))
        .add("hop", Spec::integer().at_least(1).at_most(1 << 16).fallback("160").doc(
                        "samples between frames"))
        .add("low_frequency", Spec::real().at_least(0).fallback("0").doc("in Hz"))
        .add("high_frequency",
             Spec::real().at_least(0).fallback("0").doc("in Hz; 0: half the rate"));
    return;
  }
  s.add("time_masks", Spec::integer().at_least(0).at_most(4).fallback("2").doc("bands of frames"))
      .add("time_width", Spec::integer().at_least(0).fallback("30").doc("largest number of frames"))
      .add("frequency_masks",
           Spec::integer().at_least(0).at_most(4).fallback("2").doc("bands of frequencies"))
      .add("frequency_width",
           Spec::integer().at_least(0).fallback("10").doc("largest number of frequencies"))
      .add("value", Spec::real().fallback("0").doc("that the bands become"));
}

void add_color_keys(TransformKind kind, Schema& s) {
  using K = TransformKind;
  if (kind == K::kColorJitter) {
    for (const char* key : {"brightness", "contrast", "saturation"})
      s.add(key, Spec::real().at_least(0).fallback("0").doc("largest change, either way"));
    s.add("hue", Spec::real().at_least(0).at_most(0.5).fallback("0").doc(
                     "largest change, as a share of the circle"));
  } else if (kind == K::kGrayscale) {
    s.add("probability", probability("0.1", "of a sample"));
  } else if (kind == K::kGaussianBlur) {
    s.add("sigma", two_numbers("[0.1, 2]", "smallest and largest, in pixels"));
  } else if (kind == K::kGaussianNoise) {
    s.add("strength", Spec::real().at_least(0).at_most(10).fallback("0.05").doc(
                          "deviation, as a share of the range"));
  } else {  // cutout
    s.add("probability", probability("0.5", "of a sample"))
        .add("area", Spec::list(Spec::real().above(0).at_most(1))
                         .length(2, 2)
                         .fallback("[0.02, 0.33]")
                         .doc("smallest and largest share of the image"))
        .add("ratio", two_numbers("[0.3, 3.3]", "smallest and largest, of width to height"))
        .add("value", Spec::real().fallback("0").doc("of the rectangle"));
  }
}

void add_random_view_keys(TransformKind kind, Schema& s) {
  using K = TransformKind;
  if (kind == K::kRandomResizedCrop) {
    add_size(s);
    s.add("mode", interpolation());
    s.add("area", Spec::list(Spec::real().above(0).at_most(1))
                      .length(2, 2)
                      .fallback("[0.08, 1]")
                      .doc("smallest and largest share of the image"));
    s.add("ratio",
          two_numbers("[0.75, 1.3333333333333333]", "smallest and largest, of width to height"));
  } else if (kind == K::kRandomRotation) {
    s.add("degrees", Spec::real().at_least(0).at_most(180).required().doc("largest, either way"));
    s.add("value", outside());
  } else {  // random_affine
    s.add("degrees", Spec::real().at_least(0).at_most(180).fallback("0").doc("largest, either way"))
        .add("translate", Spec::list(Spec::real().at_least(0).at_most(1))
                              .length(2, 2)
                              .fallback("[0, 0]")
                              .doc("largest shares of width and height, either way"))
        .add("zoom", two_numbers("[1, 1]", "smallest and largest"))
        .add("shear", Spec::real().at_least(0).below(90).fallback("0").doc("largest, in degrees"))
        .add("value", outside());
  }
}

/// The keys of a built-in transform.
Schema keys_of(TransformKind kind) {
  using K = TransformKind;
  Schema s;
  switch (kind) {
    case K::kCast:
      s.add("dtype", Spec::text().required().doc("of the result"));
      break;
    case K::kScale:
      s.add("factor", Spec::real().fallback("1").doc("of x"))
          .add("offset", Spec::real().fallback("0").doc("that is added"));
      break;
    case K::kNormalize:
      s.add("mean", Spec::list(Spec::real())
                        .or_else(Spec::real())
                        .required()
                        .doc("one number, or one for each channel"));
      s.add("std", Spec::list(Spec::real().above(0))
                       .or_else(Spec::real().above(0))
                       .required()
                       .doc("one number, or one for each channel"));
      break;
    case K::kOneHot:
      s.add("classes", Spec::integer().at_least(0).fallback("0").doc("0: as the field states"))
          .add("dtype", Spec::text().doc("of the result; default: float32"));
      break;
    case K::kReshape:
      s.add("shape", Spec::list(Spec::integer().at_least(-1)).required().doc("one size may be -1"));
      break;
    case K::kResize:
    case K::kCenterCrop:
    case K::kRandomCrop:
      add_size(s);
      if (kind == K::kResize) s.add("mode", interpolation());
      break;
    case K::kRandomResizedCrop:
    case K::kRandomRotation:
    case K::kRandomAffine:
      add_random_view_keys(kind, s);
      break;
    case K::kHorizontalFlip:
    case K::kVerticalFlip:
      s.add("probability", probability("0.5", "of a sample"));
      break;
    case K::kPad:
      s.add("pad", Spec::list(Spec::integer().at_least(0))
                       .or_else(Spec::integer().at_least(0))
                       .required()
                       .doc("pixels: one number, or left, right, top, bottom"));
      s.add("value", Spec::real().fallback("0").doc("of the pixels"));
      break;
    case K::kColorJitter:
    case K::kGrayscale:
    case K::kGaussianBlur:
    case K::kGaussianNoise:
    case K::kCutout:
      add_color_keys(kind, s);
      break;
    case K::kRandAugment:
      s.add("count", Spec::integer().at_least(1).at_most(4).fallback("2").doc("of changes"))
          .add("magnitude",
               Spec::integer().at_least(0).at_most(30).fallback("9").doc("of each change"))
          .add("value", outside());
      break;
    case K::kTrivialAugment:
      s.add("value", outside());
      break;
    case K::kLogMel:
    case K::kSpecAugment:
      add_sound_keys(kind, s);
      break;
    case K::kOwn:
      break;
  }
  return s;
}

Schema transform_schema(const TransformInfo& info) {
  Schema s;
  s.add("fields",
        Spec::list(Spec::text()).or_else(Spec::text()).required().doc("fields it works on"));
  s.add_all(info.keys);
  return s;
}

const char* doc_of(BatchTransformKind kind) {
  switch (kind) {
    case BatchTransformKind::kMixup:
      return "means of two samples";
    case BatchTransformKind::kCutmix:
      return "a rectangle of another image";
    case BatchTransformKind::kMosaic:
      return "four images around a random point";
  }
  return "";
}

Schema batch_transform_schema(BatchTransformKind kind) {
  Schema s;
  s.add("fields",
        Spec::list(Spec::text()).or_else(Spec::text()).required().doc("fields it works on"));
  s.add("probability", probability("1", "of a sample"));
  if (kind == BatchTransformKind::kMosaic) {
    s.add("zoom", Spec::list(Spec::real().above(0).at_most(4))
                      .length(2, 2)
                      .fallback("[0.5, 1]")
                      .doc("smallest and largest size of an image"));
    s.add("value", outside());
  } else {
    s.add("alpha", Spec::real()
                       .above(0)
                       .at_most(64)
                       .fallback(kind == BatchTransformKind::kMixup ? "0.2" : "1")
                       .doc("shares are of the distribution Beta(alpha, alpha)"));
  }
  return s;
}

/// The entry of `{name: {…}}`.
config::Entry& only_entry(Node& item) {
  if (!item.is_map() || item.entries.size() != 1)
    throw Error(ErrorCode::kConfig,
                "a transform reads `- name: {fields: …}`, found " + item.describe(),
                item.location());
  return item.entries[0];
}

/// Checks and completes the options of a transform.
void resolve_options(const Schema& schema, config::Entry& entry, const std::string& path,
                     config::Diagnostics& diagnostics) {
  if (!entry.value.is_map())
    throw Error(ErrorCode::kConfig,
                entry.key.text + ": expected a map, found " + entry.value.describe(),
                entry.value.location());
  config::Diagnostics own;
  schema.resolve(entry.value, path + "." + entry.key.text, own);
  for (const Error& e : own.errors()) diagnostics.add(e);
  own.raise();
}

TransformOptions read_built_in(TransformKind kind, const Section& s) {
  TransformOptions o;
  o.kind = kind;
  const auto has = [&](const char* key) { return s.node().find(key) && s.has(key); };
  if (has("dtype")) o.dtype = dtype_of_key(s, "dtype");
  if (has("factor")) o.factor = s.real("factor");
  if (has("offset")) o.offset = s.real("offset");
  if (has("mean")) o.mean = s.reals("mean");
  if (has("std")) o.deviation = s.reals("std");
  if (has("classes")) o.classes = s.integer("classes");
  if (has("shape")) o.shape = s.integers("shape");
  if (has("height")) o.height = s.integer("height");
  if (has("width")) o.width = s.integer("width");
  if (has("mode")) o.nearest = s.text("mode") == "nearest";
  if (has("area")) o.area = s.reals("area");
  if (has("ratio")) o.ratio = s.reals("ratio");
  if (has("degrees")) o.degrees = s.real("degrees");
  if (has("probability")) o.probability = s.real("probability");
  if (has("pad")) o.pad = s.integers("pad");
  if (has("value")) o.value = s.real("value");
  if (has("translate")) o.translate = s.reals("translate");
  if (has("zoom")) o.zoom = s.reals("zoom");
  if (has("shear")) o.shear = s.real("shear");
  if (has("brightness")) o.brightness = s.real("brightness");
  if (has("contrast")) o.contrast = s.real("contrast");
  if (has("saturation")) o.saturation = s.real("saturation");
  if (has("hue")) o.hue = s.real("hue");
  if (has("sigma")) o.sigma = s.reals("sigma");
  if (has("strength")) o.strength = s.real("strength");
  if (has("count")) o.count = s.integer("count");
  if (has("magnitude")) o.magnitude = s.integer("magnitude");
  if (has("sample_rate")) o.sample_rate = s.integer("sample_rate");
  if (has("mels")) o.mels = s.integer("mels");
  if (has("window")) o.window = s.integer("window");
  if (has("hop")) o.hop = s.integer("hop");
  if (has("low_frequency")) o.low_frequency = s.real("low_frequency");
  if (has("high_frequency")) o.high_frequency = s.real("high_frequency");
  if (has("time_masks")) o.time_masks = s.integer("time_masks");
  if (has("time_width")) o.time_width = s.integer("time_width");
  if (has("frequency_masks")) o.frequency_masks = s.integer("frequency_masks");
  if (has("frequency_width")) o.frequency_width = s.integer("frequency_width");
  return o;
}

}  // namespace

Registry<TransformInfo>& transform_registry() {
  static Registry<TransformInfo> transforms("transform", [] {
    std::vector<TransformInfo> out;
    for (const std::string& name : transform_names()) {
      const TransformKind kind = *parse_transform(name);
      out.push_back({.name = name,
                     .doc = doc_of(kind),
                     .keys = keys_of(kind),
                     .read = [kind](const Section& s) { return read_built_in(kind, s); }});
    }
    return out;
  }());
  return transforms;
}

Spec transform_spec() {
  std::vector<std::pair<std::string, Spec>> values;
  for (const auto& info : transform_registry().all())
    values.emplace_back(info->name, Spec::map(transform_schema(*info)).doc(info->doc));
  return Spec::named("transform", std::move(values));
}

Spec batch_transform_spec() {
  std::vector<std::pair<std::string, Spec>> values;
  for (const std::string& name : batch_transform_names()) {
    const BatchTransformKind kind = *parse_batch_transform(name);
    values.emplace_back(name, Spec::map(batch_transform_schema(kind)).doc(doc_of(kind)));
  }
  return Spec::named("transform of batches", std::move(values));
}

DType dtype_of_key(const Section& s, const char* key) {
  const std::string& name = s.text(key);
  if (const auto d = parse_dtype(name)) return *d;
  const auto names = dtype_names();
  throw Error(ErrorCode::kConfig, "'" + name + "' is not a dtype" + did_you_mean(name, names),
              s.location(key));
}

TransformOptions read_transform(Node& item, const std::string& path,
                                config::Diagnostics& diagnostics) {
  config::Entry& entry = only_entry(item);
  const auto info = transform_registry().find(entry.key.text);
  if (!info)
    throw Error(ErrorCode::kConfig,
                "unknown transform '" + entry.key.text + "'" +
                    did_you_mean(entry.key.text, transform_registry().names()),
                entry.key.location());
  resolve_options(transform_schema(*info), entry, path, diagnostics);
  const Section s(entry.value);
  TransformOptions o = info->read(s);
  o.fields = s.texts("fields");
  return o;
}

BatchTransformOptions read_batch_transform(Node& item, const std::string& path,
                                           config::Diagnostics& diagnostics) {
  config::Entry& entry = only_entry(item);
  const auto kind = parse_batch_transform(entry.key.text);
  if (!kind)
    throw Error(ErrorCode::kConfig,
                "unknown transform of batches '" + entry.key.text + "'" +
                    did_you_mean(entry.key.text, batch_transform_names()) +
                    "; there are: " + join(batch_transform_names(), ", "),
                entry.key.location());
  resolve_options(batch_transform_schema(*kind), entry, path, diagnostics);
  const Section s(entry.value);
  BatchTransformOptions o;
  o.kind = *kind;
  o.fields = s.texts("fields");
  o.probability = s.real("probability");
  if (*kind == BatchTransformKind::kMosaic) {
    o.zoom = s.reals("zoom");
    o.value = s.real("value");
  } else {
    o.alpha = s.real("alpha");
  }
  return o;
}

}  // namespace paddle::data
