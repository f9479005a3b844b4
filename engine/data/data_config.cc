#include "data/data_config.h"

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <map>

#include "base/files.h"
#include "config/overrides.h"
#include "data/transform_config.h"

namespace paddle::data {
namespace {

using config::Node;
using config::Schema;
using config::Section;
using config::Spec;

Schema with_part(Schema s) {
  s.add(
      "range",
      Spec::list(Spec::integer()).length(2, 2).doc("samples [begin, end); negative from the end"));
  s.add("split", Spec::map_of(Spec::real().above(0).at_most(1)).doc("named shares of the samples"));
  s.add("part", Spec::text().doc("which share is used"));
  s.add("split_in_order",
        Spec::boolean().fallback("false").doc("split by position instead of at random"));
  s.add("split_seed", Spec::integer().at_least(0).fallback("0").doc("of a random split"));
  return s;
}

Schema csv_field() {
  Schema s;
  s.add("name", Spec::text().required().doc("name of the field"));
  s.add("columns", Spec::list(Spec::text()).or_else(Spec::text()).doc("names, 'I1..I13' or 'C*'"));
  s.add("kind",
        Spec::word(
            {"numeric", "categorical", "text", "image", "mask", "multi_label", "audio", "numbers"})
            .fallback("numeric")
            .doc("numbers as they are, values looked up in a vocabulary, the tokens of a text, a "
                 "file that the cell names, or a list in the cell"));
  s.add("folder", Spec::text().doc("files: what paths are relative to; default: the data file"));
  s.add("channels",
        Spec::integer().at_least(1).at_most(3).doc("image: 1: grayscale, 3: RGB; default: 3"));
  s.add("reduce_16_bit", Spec::boolean().doc("image: read 16-bit images as 8-bit ones"));
  s.add("values",
        Spec::any().doc("mask: the name of each stored value, in the order of the classes"));
  s.add("ignore", Spec::list(Spec::integer()).doc("mask: stored values without a class (-100)"));
  s.add("sample_rate", Spec::integer().at_least(1).doc("audio: samples a second"));
  s.add("separator", Spec::text().doc("lists: what separates their items; default: |"));
  s.add("shape", Spec::list(Spec::integer().at_least(1)).doc("numbers: shape of the field"));
  s.add("tokens", Spec::word({"words", "characters"}).doc("text: what a token is; default: words"));
  s.add("lowercase", Spec::boolean().doc("text: without capitals; default: true"));
  s.add("max_length", Spec::integer().at_least(1).at_most(1 << 20).doc(
                          "text and audio: tokens or samples at which it is cut; default: 256 "
                          "tokens, 10 seconds"));
  s.add("vocabulary_size",
        Spec::integer().at_least(1).at_most(1 << 24).doc(
            "text: the most frequent tokens of the training rows; default: 30000"));
  s.add("min_count",
        Spec::integer().at_least(1).doc("text: how often a token must occur in them; default: 1"));
  s.add("scalar",
        Spec::boolean().fallback("false").doc("one number per sample instead of a vector of one"));
  s.add("dtype", Spec::text().doc("dtype of the field"));
  s.add("missing",
        Spec::word({"error", "fill", "nan"}).fallback("error").doc("what an empty cell means"));
  s.add("fill", Spec::real().fallback("0").doc("value for missing cells"));
  s.add("log", Spec::boolean().fallback("false").doc("take log(1 + x)"));
  s.add("scaling", Spec::word({"none", "min_max", "standard"})
                       .fallback("none")
                       .doc("scale with statistics of the training rows"));
  s.add("shift", Spec::list(Spec::real()).fallback("[]").doc("known statistics, one per column"));
  s.add("factor", Spec::list(Spec::real()).fallback("[]").doc("(x - shift) * factor"));
  s.add("buckets",
        Spec::integer().at_least(0).fallback("0").doc("number of hash buckets; 0: by vocabulary"));
  s.add("per_column", Spec::boolean().fallback("false").doc("statistics per column"));
  s.add("vocabulary", Spec::list(Spec::text()).fallback("[]").doc("the categories or tokens"));
  s.add("vocabulary_file", Spec::text().doc("file with the vocabulary"));
  s.add("unknown_is_zero", Spec::boolean().fallback("false").doc(
                               "map unknown categories to 0 instead of refusing them"));
  return s;
}

Schema random_field() {
  Schema s;
  s.add("name", Spec::text().required().doc("name of the field"));
  s.add("dtype", Spec::text().fallback("float32").doc("dtype of the field"));
  s.add("shape", Spec::list(Spec::integer().at_least(0)).fallback("[]").doc("shape of one sample"));
  s.add("low", Spec::real().doc("smallest value"));
  s.add("high", Spec::real().doc("largest value"));
  return s;
}

Spec dataset_spec() {
  Schema digits, idx, csv, jsonl, lines, tar, text, images, coco, yolo, npy, npz, random;
  const Spec words = Spec::list(Spec::text()).fallback("[]");
  digits.add("size", Spec::integer().at_least(1).fallback("20000").doc("samples"));
  digits.add("seed", Spec::integer().at_least(0).fallback("0").doc("of the samples"));
  digits.add("image_field", Spec::text().fallback("image").doc("name of the field with the image"))
      .add("label_field", Spec::text().fallback("label").doc("name of the field with the class"));
  idx.add("images", Spec::text().required().doc("file of images (IDX, also gzipped)"))
      .add("labels", Spec::text().doc("file of labels"));
  idx.add("image_field", Spec::text().fallback("image").doc("name of the field with the image"))
      .add("label_field", Spec::text().fallback("label").doc("name of the field with the class"));
  idx.add("classes", Spec(words).doc("class names in the order of their numbers"));
  const Spec files = Spec::list(Spec::text()).or_else(Spec::text());
  const auto paths = [&](const char* what) {
    Spec spec = files;
    return spec.required().doc(what);
  };
  const auto fields = [&] {
    return Spec::list(Spec::map(csv_field())).fallback("[]").doc("fields made of columns");
  };
  jsonl.add("path", paths("files of a JSON object a line; * and ? in a name match several"))
      .add("fields", fields());
  lines
      .add("files", Spec::map_of(Spec::text())
                        .required()
                        .doc("text files of equally many lines, by the name of their column"))
      .add("fields", fields());
  tar.add("path", paths("tar shards; * and ? in a name match several")).add("fields", fields());
  csv.add("path", paths("files; * and ? in a name match several"))
      .add("delimiter", Spec::text().doc("character between columns; default: by the file name"))
      .add("quote", Spec::text().doc("character around text"));
  csv.add("header",
          Spec::boolean().fallback("true").doc("whether the first line names the columns"))
      .add("column_names", Spec(words).doc("names of the columns of a file without a header"));
  csv.add("fields",
          Spec::list(Spec::map(csv_field())).fallback("[]").doc("fields made of columns"));
  text.add("path", Spec::text().required().doc("file or folder"));
  text.add("level",
           Spec::word({"characters", "bytes"}).fallback("characters").doc("what a token is"));
  text.add("context", Spec::integer().at_least(1).fallback("64").doc("tokens per sample"));
  text.add("windows",
           Spec::word({"random", "consecutive"}).fallback("random").doc("where samples begin"));
  text.add("samples", Spec::integer().at_least(0).fallback("0").doc(
                          "samples per epoch; 0: the length of the text decides"));
  text.add("stride", Spec::integer().at_least(0).fallback("0").doc(
                         "tokens between the starts of consecutive windows; 0: context"));
  text.add("token_field", Spec::text().fallback("tokens").doc("name of the field with the tokens"))
      .add("target_field",
           Spec::text().fallback("targets").doc("name of the field with the next tokens"));
  text.add("vocabulary", Spec(words).doc("the categories or tokens"))
      .add("vocabulary_file", Spec::text().doc("file with the vocabulary"));
  images.add("path", Spec::text().doc("file or folder"))
      .add("files", Spec(words).doc("single files instead of a folder"));
  images.add("channels",
             Spec::integer().at_least(1).at_most(3).fallback("3").doc("1: grayscale, 3: RGB"));
  images.add("image_field", Spec::text().fallback("image").doc("name of the field with the image"))
      .add("label_field", Spec::text().fallback("label").doc("name of the field with the class"));
  images.add("classes", Spec(words).doc("class names in the order of their numbers"));
  images.add("dtype", Spec::word({"uint8", "uint16"}).fallback("uint8").doc("dtype of the field"));
  images.add("reduce_16_bit",
             Spec::boolean().fallback("false").doc("read 16-bit images as 8-bit ones"));
  coco.add("annotations", Spec::text().required().doc("JSON file of images, boxes and categories"))
      .add("images", Spec::text().doc("folder of the images; default: that of the JSON file"));
  yolo.add("images", Spec::text().required().doc("folder of the images"))
      .add("labels", Spec::text().doc("folder of the text files; default: `labels` for `images`"))
      .add("classes",
           Spec::list(Spec::text()).required().doc("class names in the order of their numbers"));
  for (Schema* each : {&coco, &yolo}) {
    each->add("channels",
              Spec::integer().at_least(1).at_most(3).fallback("3").doc("1: grayscale, 3: RGB"));
    each->add("max_boxes", Spec::integer().at_least(1).at_most(1 << 16).fallback("100").doc(
                               "most boxes of an image; more make it a bad sample"));
  }
  npy.add("files", Spec::map_of(Spec::text()).required().doc("single files instead of a folder"));
  npz.add("path", Spec::text().required().doc("file or folder"))
      .add("arrays", Spec::map_of(Spec::text())
                         .fallback("{}")
                         .doc("fields by the names of the arrays in the file"));
  random.add("size", Spec::integer().at_least(1).fallback("1024").doc("samples"))
      .add("seed", Spec::integer().at_least(0).fallback("0").doc("of the samples"));
  random.add("fields",
             Spec::list(Spec::map(random_field())).required().doc("fields made of columns"));
  return Spec::choice("kind", {{"digits", with_part(digits)},
                               {"idx", with_part(idx)},
                               {"csv", with_part(csv)},
                               {"jsonl", with_part(jsonl)},
                               {"lines", with_part(lines)},
                               {"tar", with_part(tar)},
                               {"text", with_part(text)},
                               {"images", with_part(images)},
                               {"coco", with_part(coco)},
                               {"yolo", with_part(yolo)},
                               {"npy", with_part(npy)},
                               {"npz", with_part(npz)},
                               {"random", with_part(random)}});
}

/// An absolute path from one in a config. `data://` names the folder of test data: where
/// PADDLE_TEST_DATA points, or `shared/data` beside the project.
std::string resolved(const Node& node) {
  const std::string& text = node.text;
  if (trim(text).empty()) throw Error(ErrorCode::kConfig, "an empty path", node.location());
  constexpr std::string_view kScheme = "data://";
  if (!text.starts_with(kScheme)) return config::resolve_path(node);
  const std::string rest = text.substr(kScheme.size());
  namespace fs = std::filesystem;
  if (const char* root = std::getenv("PADDLE_TEST_DATA"))
    return (fs::path(root) / rest).lexically_normal().string();
  const std::string file = node.source ? node.location().file : "";
  const fs::path folder = fs::absolute(file).parent_path();
  for (fs::path at = folder;; at = at.parent_path()) {
    if (is_directory((at / "shared" / "data").string()))
      return (at / "shared" / "data" / rest).string();
    if (at == at.parent_path()) break;
  }
  throw Error(ErrorCode::kData,
              "'" + text + "': no such folder: shared/data above " + folder.string() +
                  " and PADDLE_TEST_DATA is not set",
              node.location());
}

std::string path_of(const Section& s, const char* key) {
  return s.has(key) ? resolved(s.at(key)) : "";
}

std::vector<std::pair<std::string, std::string>> text_map(const Section& s, const char* key,
                                                          bool paths) {
  std::vector<std::pair<std::string, std::string>> out;
  if (!s.has(key)) return out;
  for (const config::Entry& e : s.at(key).entries)
    out.push_back({e.key.text, paths ? resolved(e.value) : e.value.text});
  return out;
}

/// `{0: background, 255: road}`: stored values and names of classes.
std::vector<std::pair<int64_t, std::string>> read_values(const Node& node) {
  std::vector<std::pair<int64_t, std::string>> out;
  if (!node.is_map())
    throw Error(
        ErrorCode::kConfig,
        "values: expected a map such as {0: background, 255: road}, found " + node.describe(),
        node.location());
  for (const config::Entry& e : node.entries) out.push_back({e.key.as_int(), e.value.as_string()});
  return out;
}

/// The files of a `path`, which may be a list.
void read_paths(const Section& s, CsvFileOptions& out) {
  const Node& node = s.at("path");
  if (!node.is_sequence()) {
    out.path = resolved(node);
    return;
  }
  for (const Node& item : node.items)
    (out.path.empty() ? out.path : out.more_paths.emplace_back()) = resolved(item);
  if (out.path.empty()) throw Error(ErrorCode::kConfig, "path: the list is empty", node.location());
}

CsvField read_csv_field(const Section& s) {
  CsvField f;
  f.name = s.text("name");
  if (s.has("columns")) f.columns = s.texts("columns");
  f.scalar = s.boolean("scalar");
  static const std::map<std::string, ColumnKind> kKinds = {
      {"numeric", ColumnKind::kNumeric}, {"categorical", ColumnKind::kCategorical},
      {"text", ColumnKind::kText},       {"image", ColumnKind::kImage},
      {"mask", ColumnKind::kMask},       {"multi_label", ColumnKind::kMultiLabel},
      {"audio", ColumnKind::kAudio},     {"numbers", ColumnKind::kNumbers}};
  f.kind = kKinds.at(s.text("kind"));
  using K = ColumnKind;
  const std::pair<const char*, std::vector<K>> suited[] = {
      {"tokens", {K::kText}},
      {"lowercase", {K::kText}},
      {"max_length", {K::kText, K::kAudio}},
      {"vocabulary_size", {K::kText}},
      {"min_count", {K::kText}},
      {"folder", {K::kImage, K::kMask, K::kAudio}},
      {"channels", {K::kImage}},
      {"reduce_16_bit", {K::kImage}},
      {"values", {K::kMask}},
      {"ignore", {K::kMask}},
      {"sample_rate", {K::kAudio}},
      {"separator", {K::kMultiLabel, K::kNumbers}},
      {"shape", {K::kNumbers}}};
  for (const auto& [key, kinds] : suited)
    if (s.has(key) && std::find(kinds.begin(), kinds.end(), f.kind) == kinds.end())
      throw Error(
          ErrorCode::kConfig,
          str("field '", f.name, "': `", key, "` has no effect with `kind: ", s.text("kind"), "`"),
          s.location(key));
  f.folder = path_of(s, "folder");
  if (s.has("channels")) f.channels = static_cast<int>(s.integer("channels"));
  if (s.has("reduce_16_bit")) f.reduce_16_bit = s.boolean("reduce_16_bit");
  if (s.has("values")) f.values = read_values(s.at("values"));
  if (s.has("ignore")) f.ignored = s.integers("ignore");
  if (s.has("sample_rate")) f.sample_rate = s.integer("sample_rate");
  if (f.kind == K::kAudio) f.max_length = 10 * f.sample_rate;
  if (s.has("separator")) f.separator = s.text("separator");
  if (s.has("shape")) f.shape = s.integers("shape");
  if (s.has("tokens"))
    f.tokens = s.text("tokens") == "words" ? TokenKind::kWords : TokenKind::kCharacters;
  if (s.has("lowercase")) f.lowercase = s.boolean("lowercase");
  if (s.has("max_length")) f.max_length = s.integer("max_length");
  if (s.has("vocabulary_size")) f.vocabulary_size = s.integer("vocabulary_size");
  if (s.has("min_count")) f.min_count = s.integer("min_count");
  if (s.has("dtype")) f.dtype = dtype_of_key(s, "dtype");
  f.missing = s.text("missing") == "fill"  ? MissingPolicy::kFill
              : s.text("missing") == "nan" ? MissingPolicy::kNan
                                           : MissingPolicy::kError;
  f.fill = s.real("fill");
  f.log = s.boolean("log");
  f.scaling = s.text("scaling") == "min_max"    ? Scaling::kMinMax
              : s.text("scaling") == "standard" ? Scaling::kStandard
                                                : Scaling::kNone;
  f.shift = s.reals("shift");
  f.factor = s.reals("factor");
  f.buckets = s.integer("buckets");
  f.per_column = s.boolean("per_column");
  f.vocabulary = s.texts("vocabulary");
  f.vocabulary_file = path_of(s, "vocabulary_file");
  f.unknown_is_zero = s.boolean("unknown_is_zero");
  return f;
}

DatasetOptions read_dataset(const Section& s) {
  DatasetOptions o;
  const std::string& kind = s.text("kind");
  if (kind == "digits") {
    o.source = DigitsOptions{s.integer("size"), static_cast<uint64_t>(s.integer("seed")),
                             s.text("image_field"), s.text("label_field")};
  } else if (kind == "idx") {
    o.source = IdxOptions{path_of(s, "images"), path_of(s, "labels"), s.text("image_field"),
                          s.text("label_field"), s.texts("classes")};
  } else if (kind == "csv") {
    CsvFileOptions c;
    read_paths(s, c);
    const auto character = [&](const char* key, char& target) {
      if (!s.has(key)) return;
      const std::string& t = s.text(key);
      if (t == "tab" || t == "\\t")
        target = '\t';
      else if (t.size() == 1)
        target = t[0];
      else
        throw Error(ErrorCode::kConfig,
                    std::string(key) + ": expected one character, found '" + t + "'",
                    s.location(key));
    };
    character("delimiter", c.delimiter);
    character("quote", c.quote);
    c.header = s.boolean("header");
    c.column_names = s.texts("column_names");
    for (const Section& f : s.sections("fields")) c.fields.push_back(read_csv_field(f));
    o.source = c;
  } else if (kind == "jsonl" || kind == "lines" || kind == "tar") {
    CsvFileOptions c;
    c.format = kind == "jsonl"   ? RecordFormat::kJsonl
               : kind == "lines" ? RecordFormat::kLines
                                 : RecordFormat::kTar;
    if (c.format == RecordFormat::kLines) {
      c.line_files = text_map(s, "files", true);
      if (c.line_files.empty())
        throw Error(ErrorCode::kConfig, "lines: give files", s.node().location());
    } else {
      read_paths(s, c);
    }
    for (const Section& f : s.sections("fields")) c.fields.push_back(read_csv_field(f));
    o.source = c;
  } else if (kind == "text") {
    TextOptions t;
    t.path = path_of(s, "path");
    t.level = s.text("level") == "bytes" ? TextLevel::kBytes : TextLevel::kCharacters;
    t.context = s.integer("context");
    t.windows = s.text("windows") == "random" ? TextWindows::kRandom : TextWindows::kConsecutive;
    t.samples = s.integer("samples");
    t.stride = s.integer("stride");
    t.token_field = s.text("token_field");
    t.target_field = s.text("target_field");
    t.vocabulary = s.texts("vocabulary");
    t.vocabulary_file = path_of(s, "vocabulary_file");
    o.source = t;
  } else if (kind == "images") {
    ImageFolderOptions i;
    i.path = path_of(s, "path");
    if (s.has("files"))
      for (const Node& n : s.at("files").items) i.files.push_back(resolved(n));
    i.channels = static_cast<int>(s.integer("channels"));
    i.image_field = s.text("image_field");
    i.label_field = s.text("label_field");
    i.classes = s.texts("classes");
    i.dtype = s.text("dtype") == "uint16" ? DType::kU16 : DType::kU8;
    i.reduce_16_bit = s.boolean("reduce_16_bit");
    if (i.path.empty() == i.files.empty())
      throw Error(ErrorCode::kConfig, "images: give either path or files", s.node().location());
    o.source = i;
  } else if (kind == "coco" || kind == "yolo") {
    BoxOptions b;
    b.format = kind == "coco" ? BoxOptions::Format::kCoco : BoxOptions::Format::kYolo;
    b.images = path_of(s, "images");
    if (kind == "coco") {
      b.annotations = path_of(s, "annotations");
    } else {
      b.labels = path_of(s, "labels");
      b.classes = s.texts("classes");
    }
    b.channels = static_cast<int>(s.integer("channels"));
    b.max_boxes = s.integer("max_boxes");
    o.source = b;
  } else if (kind == "npy") {
    o.source = NpyOptions{text_map(s, "files", true)};
  } else if (kind == "npz") {
    o.source = NpzOptions{path_of(s, "path"), text_map(s, "arrays", false)};
  } else {
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
    o.source = r;
  }
  if (s.has("range")) {
    const auto range = s.integers("range");
    o.begin = range[0];
    o.end = range[1];
  }
  if (s.has("split"))
    for (const config::Entry& e : s.at("split").entries)
      o.split.push_back({e.key.text, e.value.as_double()});
  if (s.has("part")) o.part = s.text("part");
  o.split_in_order = s.boolean("split_in_order");
  o.split_seed = static_cast<uint64_t>(s.integer("split_seed"));
  return o;
}

}  // namespace

Schema data_schema() {
  Schema s;
  s.add("batch_size", Spec::integer().at_least(1).at_most(1 << 24).fallback("32").doc(
                          "samples of one update, over all micro-batches and processes"));
  s.add("train", dataset_spec().required().doc("the data to train on"));
  s.add("valid", dataset_spec().doc("the data to validate on"));
  s.add("test", dataset_spec().doc("the data to evaluate on once, at the end"));
  s.add("transforms",
        Spec::list(Spec::any()).fallback("[]").doc("preprocessing of samples, in order"));
  s.add("augment", Spec::list(Spec::any())
                       .fallback("[]")
                       .doc("transforms for training alone, before the others"));
  s.add("shuffle", Spec::boolean().fallback("true").doc("a new order in every epoch"));
  Schema balanced, weighted;
  for (Schema* each : {&balanced, &weighted})
    each->add("field", Spec::text().required().doc(each == &balanced ? "the field with the class"
                                                                     : "the field with the weight"))
        .add("samples", Spec::integer().at_least(0).fallback("0").doc(
                            "samples of an epoch; 0: as many as there are"));
  balanced.add("power", Spec::real().at_least(0).fallback("1").doc(
                            "1 draws all classes equally often, 0 as often as they occur"));
  s.add("sampler", Spec::choice("kind", {{"balanced", balanced}, {"weighted", weighted}})
                       .doc("draw the samples of an epoch by class or weight, with repetition"));
  Schema class_weights;
  class_weights.add("field", Spec::text().required().doc("the field with the class"))
      .add("power", Spec::real().at_least(0).fallback("1").doc(
                        "weights are proportional to (samples of the class)^-power"));
  s.add("class_weights",
        Spec::map(class_weights)
            .doc("makes the vector class_weights for the loss, from the training samples"));
  s.add("length_window", Spec::integer().at_least(0).at_most(1 << 20).fallback("50").doc(
                             "texts: batches among which samples of similar lengths are gathered"));
  s.add("drop_last",
        Spec::boolean().fallback("false").doc("leave out a last batch that is not full"));
  s.add("workers",
        Spec::integer().at_least(0).at_most(256).fallback("1").doc("threads that load ahead"));
  s.add("prefetch_bytes", Spec::integer()
                              .at_least(1)
                              .fallback("268435456")
                              .doc("memory for batches that are loaded ahead"));
  s.add("valid_batch_size",
        Spec::integer().at_least(1).at_most(1 << 24).doc("default: batch_size"));
  s.add("on_bad_sample", Spec::word({"error", "skip"})
                             .fallback("error")
                             .doc("what a sample that cannot be read does"));
  s.add("max_bad_rate", Spec::real().at_least(0).at_most(1).fallback("0.01").doc(
                            "share of skipped samples above which training stops"));
  s.add("nan",
        Spec::word({"error", "skip", "keep"}).fallback("error").doc("what a sample with NaN does"));
  return s;
}

void make_data_paths_absolute(Node& section, config::Diagnostics& diagnostics) {
  const auto absolute = [&](Node& node) {
    if (node.is_scalar() && !node.text.empty())
      diagnostics.guard([&] { node.text = resolved(node); });
  };
  for (const char* part : {"train", "valid", "test"}) {
    Node* dataset = section.find(part);
    if (!dataset || !dataset->is_map()) continue;
    for (const char* key : {"path", "images", "labels", "annotations", "vocabulary_file"})
      if (Node* n = dataset->find(key)) {
        absolute(*n);
        for (Node& item : n->items) absolute(item);
      }
    if (Node* files = dataset->find("files")) {
      for (Node& item : files->items) absolute(item);
      for (config::Entry& e : files->entries) absolute(e.value);
    }
    if (Node* fields = dataset->find("fields"))
      for (Node& field : fields->items)
        for (const char* key : {"vocabulary_file", "folder"})
          if (Node* n = field.find(key)) absolute(*n);
  }
}

DataConfig read_data(const Section& s, uint64_t seed, config::Diagnostics& diagnostics) {
  DataConfig c;
  diagnostics.guard([&] { c.train = read_dataset(s.section("train")); });
  if (s.has("valid")) diagnostics.guard([&] { c.valid = read_dataset(s.section("valid")); });
  if (s.has("test")) diagnostics.guard([&] { c.test = read_dataset(s.section("test")); });
  if (s.has("sampler")) {
    const Section sampler = s.section("sampler");
    const bool balanced = sampler.text("kind") == "balanced";
    c.sampler = SamplerOptions{
        balanced ? SamplerOptions::Kind::kBalanced : SamplerOptions::Kind::kWeighted,
        sampler.text("field"), balanced ? sampler.real("power") : 1, sampler.integer("samples")};
    if (!s.boolean("shuffle"))
      diagnostics.add(ErrorCode::kConfig, "data.sampler: has no effect with shuffle: false",
                      s.location("sampler"));
  }
  if (s.has("class_weights")) {
    const Section weights = s.section("class_weights");
    c.class_weights = ClassWeightOptions{weights.text("field"), weights.real("power")};
  }
  LoaderOptions& l = c.loader;
  l.batch_size = s.integer("batch_size");
  l.shuffle = s.boolean("shuffle");
  l.length_window = s.integer("length_window");
  l.drop_last = s.boolean("drop_last");
  l.seed = seed;
  l.workers = static_cast<int>(s.integer("workers"));
  l.prefetch_bytes = static_cast<uint64_t>(s.integer("prefetch_bytes"));
  l.on_bad_sample =
      s.text("on_bad_sample") == "skip" ? BadSamplePolicy::kSkip : BadSamplePolicy::kError;
  l.max_bad_rate = s.real("max_bad_rate");
  l.nan = s.text("nan") == "skip"   ? NanPolicy::kSkip
          : s.text("nan") == "keep" ? NanPolicy::kKeep
                                    : NanPolicy::kError;
  c.valid_loader = l;
  c.valid_loader.shuffle = false;
  c.valid_loader.drop_last = false;
  c.valid_loader.epochs = 1;
  c.valid_loader.batch_size =
      s.has("valid_batch_size") ? s.integer("valid_batch_size") : l.batch_size;
  for (const char* list : {"augment", "transforms"}) {
    Node items = s.at(list);
    for (Node& item : items.items)
      diagnostics.guard([&] {
        const TransformOptions t = read_transform(item, str("data.", list), diagnostics);
        l.transforms.push_back(t);
        if (std::string_view(list) == "transforms") c.valid_loader.transforms.push_back(t);
      });
  }
  return c;
}

DataConfig read_data_section(Node document) {
  config::Diagnostics diagnostics;
  Node* section = document.find("data");
  if (!section) throw Error(ErrorCode::kConfig, "the config has no 'data'", document.location());
  data_schema().resolve(*section, "data", diagnostics);
  if (section->is_map()) make_data_paths_absolute(*section, diagnostics);
  diagnostics.raise();
  const Node* seed = document.find("seed");
  DataConfig data =
      read_data(Section(*section), seed ? static_cast<uint64_t>(seed->as_int()) : 0, diagnostics);
  diagnostics.raise();
  return data;
}

DataConfig read_config_data(const std::string& path) {
  config::Diagnostics diagnostics;
  Node document = config::read_extended(path, diagnostics);
  config::resolve_references(document, diagnostics);
  diagnostics.raise();
  return read_data_section(std::move(document));
}

DataName parse_data_name(const std::string& text, const std::vector<std::string>& parts) {
  if (std::find(parts.begin(), parts.end(), text) != parts.end()) return {"", text};
  DataName out{text};
  if (const size_t colon = text.rfind(':'); colon != std::string::npos && colon > 1) {
    out.file = text.substr(0, colon);
    out.part = text.substr(colon + 1);
  }
  return out;
}

}  // namespace paddle::data
