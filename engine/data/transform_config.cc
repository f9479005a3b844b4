#include "data/transform_config.h"

namespace paddle::data {
namespace {

using config::Node;
using config::Schema;
using config::Section;
using config::Spec;

Schema transform_schema(TransformKind kind) {
  using K = TransformKind;
  Schema s;
  s.add("fields",
        Spec::list(Spec::text()).or_else(Spec::text()).required().doc("fields it works on"));
  switch (kind) {
    case K::kCast:
      s.add("dtype", Spec::text().required());
      break;
    case K::kScale:
      s.add("factor", Spec::real().fallback("1")).add("offset", Spec::real().fallback("0"));
      break;
    case K::kNormalize:
      s.add("mean", Spec::list(Spec::real()).or_else(Spec::real()).required());
      s.add("std", Spec::list(Spec::real().above(0)).or_else(Spec::real().above(0)).required());
      break;
    case K::kOneHot:
      s.add("classes", Spec::integer().at_least(0).fallback("0")).add("dtype", Spec::text());
      break;
    case K::kReshape:
      s.add("shape", Spec::list(Spec::integer().at_least(-1)).required());
      break;
    case K::kResize:
    case K::kCenterCrop:
    case K::kRandomCrop:
      s.add("height", Spec::integer().at_least(1).required())
          .add("width", Spec::integer().at_least(1).required());
      if (kind == K::kResize)
        s.add("mode", Spec::word({"bilinear", "nearest"}).fallback("bilinear"));
      break;
    case K::kRandomResizedCrop:
      s.add("height", Spec::integer().at_least(1).required())
          .add("width", Spec::integer().at_least(1).required());
      s.add("mode", Spec::word({"bilinear", "nearest"}).fallback("bilinear"));
      s.add("area",
            Spec::list(Spec::real().above(0).at_most(1)).length(2, 2).fallback("[0.08, 1]"));
      s.add("ratio",
            Spec::list(Spec::real().above(0)).length(2, 2).fallback("[0.75, 1.3333333333333333]"));
      break;
    case K::kRandomRotation:
      s.add("degrees", Spec::real().at_least(0).at_most(180).required());
      s.add("value", Spec::real().fallback("0"));
      break;
    case K::kHorizontalFlip:
    case K::kVerticalFlip:
      s.add("probability", Spec::real().at_least(0).at_most(1).fallback("0.5"));
      break;
    case K::kPad:
      s.add(
          "pad",
          Spec::list(Spec::integer().at_least(0)).or_else(Spec::integer().at_least(0)).required());
      s.add("value", Spec::real().fallback("0"));
      break;
    case K::kRandomAffine:
      s.add("degrees", Spec::real().at_least(0).at_most(180).fallback("0"))
          .add("translate",
               Spec::list(Spec::real().at_least(0).at_most(1)).length(2, 2).fallback("[0, 0]"))
          .add("zoom", Spec::list(Spec::real().above(0)).length(2, 2).fallback("[1, 1]"))
          .add("shear", Spec::real().at_least(0).below(90).fallback("0"))
          .add("value", Spec::real().fallback("0"));
      break;
    case K::kColorJitter:
      for (const char* key : {"brightness", "contrast", "saturation"})
        s.add(key, Spec::real().at_least(0).fallback("0"));
      s.add("hue", Spec::real().at_least(0).at_most(0.5).fallback("0"));
      break;
    case K::kGrayscale:
      s.add("probability", Spec::real().at_least(0).at_most(1).fallback("0.1"));
      break;
    case K::kGaussianBlur:
      s.add("sigma", Spec::list(Spec::real().above(0)).length(2, 2).fallback("[0.1, 2]"));
      break;
    case K::kGaussianNoise:
      s.add("strength", Spec::real().at_least(0).at_most(10).fallback("0.05"));
      break;
    case K::kCutout:
      s.add("probability", Spec::real().at_least(0).at_most(1).fallback("0.5"))
          .add("area",
               Spec::list(Spec::real().above(0).at_most(1)).length(2, 2).fallback("[0.02, 0.33]"))
          .add("ratio", Spec::list(Spec::real().above(0)).length(2, 2).fallback("[0.3, 3.3]"))
          .add("value", Spec::real().fallback("0"));
      break;
    case K::kRandAugment:
      s.add("count", Spec::integer().at_least(1).at_most(4).fallback("2"))
          .add("magnitude", Spec::integer().at_least(0).at_most(30).fallback("9"))
          .add("value", Spec::real().fallback("0"));
      break;
    case K::kTrivialAugment:
      s.add("value", Spec::real().fallback("0"));
      break;
    case K::kLogMel:
      s.add("sample_rate", Spec::integer().at_least(1).at_most(1 << 20).required())
          .add("mels", Spec::integer().at_least(1).at_most(1024).fallback("64"))
          .add("window", Spec::integer().at_least(2).at_most(1 << 16).fallback("400"))
          .add("hop", Spec::integer().at_least(1).at_most(1 << 16).fallback("160"))
          .add("low_frequency", Spec::real().at_least(0).fallback("0"))
          .add("high_frequency", Spec::real().at_least(0).fallback("0"));
      break;
    case K::kSpecAugment:
      s.add("time_masks", Spec::integer().at_least(0).at_most(4).fallback("2"))
          .add("time_width", Spec::integer().at_least(0).fallback("30"))
          .add("frequency_masks", Spec::integer().at_least(0).at_most(4).fallback("2"))
          .add("frequency_width", Spec::integer().at_least(0).fallback("10"))
          .add("value", Spec::real().fallback("0"));
      break;
  }
  return s;
}

Schema batch_transform_schema(BatchTransformKind kind) {
  Schema s;
  s.add("fields",
        Spec::list(Spec::text()).or_else(Spec::text()).required().doc("fields it works on"));
  s.add("probability", Spec::real().at_least(0).at_most(1).fallback("1"));
  if (kind == BatchTransformKind::kMosaic) {
    s.add("zoom", Spec::list(Spec::real().above(0).at_most(4)).length(2, 2).fallback("[0.5, 1]"));
    s.add("value", Spec::real().fallback("0"));
  } else {
    s.add("alpha", Spec::real().above(0).at_most(64).fallback(
                       kind == BatchTransformKind::kMixup ? "0.2" : "1"));
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

}  // namespace

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
  const auto kind = parse_transform(entry.key.text);
  const auto names = transform_names();
  if (!kind)
    throw Error(ErrorCode::kConfig,
                "unknown transform '" + entry.key.text + "'" + did_you_mean(entry.key.text, names),
                entry.key.location());
  resolve_options(transform_schema(*kind), entry, path, diagnostics);
  const Section s(entry.value);
  TransformOptions o;
  o.kind = *kind;
  o.fields = s.texts("fields");
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
