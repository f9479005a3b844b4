#include "data/config/dataset_config.h"

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <map>

#include "base/files.h"
#include "config/overrides.h"
#include "data/config/transform_config.h"
#include "data/data_folder.h"
#include "data/named_dataset.h"

namespace paddle::data {

using config::Node;
using config::Schema;
using config::Section;
using config::Spec;

std::string resolved_path(const Node& node) {
  const std::string& text = node.text;
  if (trim(text).empty()) throw Error(ErrorCode::kConfig, "an empty path", node.location());
  constexpr std::string_view kScheme = "data://";
  if (!text.starts_with(kScheme)) return config::resolve_path(node);
  const std::string rest = text.substr(kScheme.size());
  namespace fs = std::filesystem;
  if (const char* root = std::getenv("PADDLE_TEST_DATA"))
    return (fs::path(root) / rest).lexically_normal().string();
  const std::string file = node.source ? node.location().file : "";
  std::vector<fs::path> roots;
  for (fs::path at = fs::absolute(file).parent_path();; at = at.parent_path()) {
    if (is_directory((at / "shared" / "data").string())) {
      roots.push_back(at / "shared" / "data");
      break;
    }
    if (at == at.parent_path()) break;
  }
  roots.emplace_back(data_folder());
  for (const fs::path& root : roots)
    if (const std::string path = (root / rest).lexically_normal().string();
        file_exists(path) || is_directory(path))
      return path;
  const std::string dataset = dataset_with_file(rest);
  throw Error(ErrorCode::kData,
              str("'", text, "' is not in ", roots.back().string(),
                  dataset.empty() ? "" : str("; `paddle get ", dataset, "` downloads it")),
              node.location());
}

std::string path_of(const Section& s, const char* key) {
  return s.has(key) ? resolved_path(s.at(key)) : "";
}

void read_paths(const Section& s, std::string& path, std::vector<std::string>& more_paths) {
  const Node& node = s.at("path");
  if (!node.is_sequence()) {
    path = resolved_path(node);
    return;
  }
  for (const Node& item : node.items)
    (path.empty() ? path : more_paths.emplace_back()) = resolved_path(item);
  if (path.empty()) throw Error(ErrorCode::kConfig, "path: the list is empty", node.location());
}

Spec paths_spec(const char* doc) {
  return Spec::list(Spec::text()).or_else(Spec::text()).required().doc(doc);
}

namespace {

Schema with_part(Schema s) {
  s.add(
      "range",
      Spec::list(Spec::integer()).length(2, 2).doc("samples [begin, end); negative from the end"));
  s.add("split", Spec::map_of(Spec::real().above(0).at_most(1)).doc("named shares of the samples"));
  s.add("part", Spec::text().doc("which share is used"));
  s.add("split_in_order",
        Spec::boolean().fallback("false").doc("split by position instead of at random"));
  s.add("split_seed", Spec::integer().at_least(0).fallback("0").doc("of a random split"));
  s.add("split_stratify", Spec::text().doc("field or column: every class in its share"));
  s.add("split_group", Spec::text().doc("column: samples with one value stay together"));
  s.add("split_time", Spec::text().doc("column: split in its order, one time stays together"));
  s.add("folds", Spec::integer().at_least(2).at_most(1000).doc(
                     "cross-validation instead of shares: part valid is one fold, train the rest"));
  s.add("fold", Spec::integer().at_least(0).doc("which fold validates; default: 0"));
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
  s.add("tokens",
        Spec::word({"words", "characters", "spaces"}).doc("text: what a token is; default: words"));
  s.add("tokenizer", Spec::text().doc("text: subwords of a model folder, tokenizer.json or .model "
                                      "file, instead of words and a vocabulary"));
  s.add("special_tokens",
        Spec::boolean().doc("tokenizer: add its beginning and end tokens; default: true"));
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
        Spec::word({"error", "fill", "nan", "category"})
            .doc("what an empty cell is: a bad sample, `fill`, NaN or a category of its own; "
                 "default: category for inputs of kind categorical, else error"));
  s.add("fill", Spec::real().fallback("0").doc("value for missing cells"));
  s.add("log", Spec::boolean().fallback("false").doc("take sign(x) * log(1 + abs(x))"));
  s.add("scaling", Spec::word({"none", "min_max", "standard"})
                       .fallback("none")
                       .doc("scale with statistics of the training rows"));
  s.add("shift", Spec::list(Spec::real()).fallback("[]").doc("known statistics, one per column"));
  s.add("factor", Spec::list(Spec::real()).fallback("[]").doc("(x - shift) * factor"));
  s.add("buckets",
        Spec::integer().at_least(0).fallback("0").doc("number of hash buckets; 0: by vocabulary"));
  s.add("per_column", Spec::boolean().fallback("false").doc(
                          "categories are numbered separately in each column of the field"));
  s.add("vocabulary", Spec::list(Spec::text()).fallback("[]").doc("the categories or tokens"));
  s.add("vocabulary_file", Spec::text().doc("file with the vocabulary"));
  s.add("unknown_is_zero", Spec::boolean().fallback("false").doc(
                               "map unknown categories to 0 instead of rejecting them"));
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

std::vector<std::pair<std::string, std::string>> text_map(const Section& s, const char* key,
                                                          bool paths) {
  std::vector<std::pair<std::string, std::string>> out;
  if (!s.has(key)) return out;
  for (const config::Entry& e : s.at(key).entries)
    out.push_back({e.key.text, paths ? resolved_path(e.value) : e.value.text});
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
      {"tokenizer", {K::kText}},
      {"special_tokens", {K::kText}},
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
  f.tokenizer.path = path_of(s, "tokenizer");
  for (const char* key : {"tokens", "lowercase", "vocabulary_size", "min_count"})
    if (s.has(key) && s.has("tokenizer"))
      throw Error(ErrorCode::kConfig,
                  str("field '", f.name, "': `", key, "` has no effect with `tokenizer`"),
                  s.location(key));
  if (s.has("special_tokens")) {
    f.special_tokens = s.boolean("special_tokens");
    if (!s.has("tokenizer"))
      throw Error(ErrorCode::kConfig,
                  str("field '", f.name, "': `special_tokens` has no effect without `tokenizer`"),
                  s.location("special_tokens"));
  }
  f.folder = path_of(s, "folder");
  if (s.has("channels")) f.channels = static_cast<int>(s.integer("channels"));
  if (s.has("reduce_16_bit")) f.reduce_16_bit = s.boolean("reduce_16_bit");
  if (s.has("values")) f.values = read_values(s.at("values"));
  if (s.has("ignore")) f.ignored = s.integers("ignore");
  if (s.has("sample_rate")) f.sample_rate = s.integer("sample_rate");
  if (f.kind == K::kAudio) f.max_length = 10 * f.sample_rate;
  if (s.has("separator")) f.separator = s.text("separator");
  if (s.has("shape")) f.shape = s.integers("shape");
  if (s.has("tokens")) f.tokens = *parse_token_kind(s.text("tokens"));
  if (s.has("lowercase")) f.lowercase = s.boolean("lowercase");
  if (s.has("max_length")) f.max_length = s.integer("max_length");
  if (s.has("vocabulary_size")) f.vocabulary_size = s.integer("vocabulary_size");
  if (s.has("min_count")) f.min_count = s.integer("min_count");
  if (s.has("dtype")) f.dtype = dtype_of_key(s, "dtype");
  if (s.has("missing")) {
    static const std::map<std::string, MissingPolicy> kMissing = {
        {"error", MissingPolicy::kError},
        {"fill", MissingPolicy::kFill},
        {"nan", MissingPolicy::kNan},
        {"category", MissingPolicy::kCategory}};
    f.missing = kMissing.at(s.text("missing"));
  }
  f.fill = s.real("fill");
  f.log = s.boolean("log");
  f.scaling = s.text("scaling") == "min_max"    ? Scaling::kMinMax
              : s.text("scaling") == "standard" ? Scaling::kStandard
                                                : Scaling::kNone;
  f.shift = s.reals("shift");
  f.factor = s.reals("factor");
  f.buckets = s.integer("buckets");
  // The empty text has a hash as any other; configs of older versions state `error` for all fields.
  if (f.kind == K::kCategorical && f.buckets > 0 && f.missing == MissingPolicy::kError)
    f.missing = MissingPolicy::kDefault;
  f.per_column = s.boolean("per_column");
  f.vocabulary = s.texts("vocabulary");
  f.vocabulary_file = path_of(s, "vocabulary_file");
  f.unknown_is_zero = s.boolean("unknown_is_zero");
  return f;
}

}  // namespace

void add_csv_format_keys(Schema& s) {
  s.add("delimiter", Spec::text().doc("character between columns; default: by the file name"))
      .add("quote", Spec::text().doc("character around text, or none; default: \""))
      .add("decimal", Spec::word({".", ","}).fallback(".").doc("decimal mark of numbers"));
}

void read_csv_format(const Section& s, CsvFileOptions& c) {
  const auto character = [&](const char* key, char& target) {
    if (!s.has(key)) return;
    const std::string& t = s.text(key);
    if (t == "tab" || t == "\\t")
      target = '\t';
    else if (t == "none" && std::string_view(key) == "quote")
      target = '\0';
    else if (t.size() == 1)
      target = t[0];
    else
      throw Error(ErrorCode::kConfig,
                  std::string(key) + ": expected one character" +
                      (std::string_view(key) == "quote" ? " or none" : "") + ", found '" + t + "'",
                  s.location(key));
  };
  character("delimiter", c.delimiter);
  character("quote", c.quote);
  c.decimal = s.text("decimal")[0];
  if (c.quote != '\0' && c.quote == c.delimiter)
    throw Error(ErrorCode::kConfig, str("quote: '", c.quote, "' is also the delimiter"),
                s.location("quote"));
}

Spec dataset_spec() {
  Schema digits, idx, csv, jsonl, lines, tar, parquet, text, images, coco, yolo, npy, npz, random;
  Schema hdf5, series, tokens, chat, mixture, slots;
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
  const auto fields = [&] {
    return Spec::list(Spec::map(csv_field())).fallback("[]").doc("fields made of columns");
  };
  jsonl.add("path", paths_spec("files of a JSON object a line; * and ? match several"))
      .add("fields", fields());
  lines
      .add("files", Spec::map_of(Spec::text())
                        .required()
                        .doc("text files of equally many lines, by the name of their column"))
      .add("fields", fields());
  tar.add("path", paths_spec("tar shards; * and ? match several")).add("fields", fields());
  parquet.add("path", paths_spec("Parquet files; * and ? match several")).add("fields", fields());
  slots.add("path", paths_spec("slot files; * and ? match several"))
      .add("slots",
           Spec::list(Spec::text()).required().doc("names of all slots, in the order of a line"))
      .add("fields", fields());
  csv.add("path", paths_spec("files; * and ? match several"));
  add_csv_format_keys(csv);
  csv.add("header",
          Spec::boolean().fallback("true").doc("whether the first line names the columns"))
      .add("column_names", Spec(words).doc("names of the columns of a file without a header"));
  csv.add("fields",
          Spec::list(Spec::map(csv_field())).fallback("[]").doc("fields made of columns"));
  add_text_keys(text);
  add_tokens_keys(tokens);
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
    each->add("dtype", Spec::word({"uint8", "uint16"}).fallback("uint8").doc("dtype of the field"));
    each->add("reduce_16_bit",
              Spec::boolean().fallback("false").doc("read 16-bit images as 8-bit ones"));
    each->add("max_boxes", Spec::integer().at_least(1).at_most(1 << 16).fallback("100").doc(
                               "most boxes of an image; more make it a bad sample"));
  }
  npy.add("files", Spec::map_of(Spec::text()).required().doc("single files instead of a folder"));
  npz.add("path", Spec::text().required().doc("file or folder"))
      .add("arrays", Spec::map_of(Spec::text())
                         .fallback("{}")
                         .doc("fields by the names of the arrays in the file"));
  hdf5.add("path", Spec::text().required().doc("HDF5 file"))
      .add("arrays", Spec::map_of(Spec::text())
                         .fallback("{}")
                         .doc("fields by the names of the datasets in the file"));
  add_series_keys(series);
  add_chat_keys(chat);
  random.add("size", Spec::integer().at_least(1).fallback("1024").doc("samples"))
      .add("seed", Spec::integer().at_least(0).fallback("0").doc("of the samples"));
  random.add("fields",
             Spec::list(Spec::map(random_field())).required().doc("fields made of columns"));
  std::vector<std::pair<std::string, Schema>> kinds = {
      {"digits", with_part(digits)},   {"idx", with_part(idx)},     {"csv", with_part(csv)},
      {"jsonl", with_part(jsonl)},     {"lines", with_part(lines)}, {"tar", with_part(tar)},
      {"parquet", with_part(parquet)}, {"text", with_part(text)},   {"images", with_part(images)},
      {"coco", with_part(coco)},       {"yolo", with_part(yolo)},   {"npy", with_part(npy)},
      {"npz", with_part(npz)},         {"hdf5", with_part(hdf5)},   {"series", with_part(series)},
      {"tokens", with_part(tokens)},   {"chat", with_part(chat)},   {"slots", with_part(slots)},
      {"random", with_part(random)}};
  Schema named;
  add_named_keys(named);
  kinds.emplace_back("dataset", with_part(named));
  add_mixture_keys(mixture, Spec::choice("kind", kinds));
  kinds.emplace_back("mixture", mixture);
  return Spec::choice("kind", kinds);
}

DatasetOptions read_dataset(const Section& s) {
  DatasetOptions o;
  const std::string& kind = s.text("kind");
  if (kind == "dataset")
    throw Error(ErrorCode::kConfig, "dataset: a description cannot refer to another one",
                s.node().location());
  if (kind == "mixture") {
    o.source = read_mixture(s);
    return o;
  }
  if (kind == "hdf5") {
    o.source = Hdf5Options{path_of(s, "path"), text_map(s, "arrays", false)};
  } else if (kind == "series") {
    o.source = read_series(s);
  } else if (kind == "chat") {
    o.source = read_chat(s);
  } else if (kind == "digits") {
    o.source = DigitsOptions{s.integer("size"), static_cast<uint64_t>(s.integer("seed")),
                             s.text("image_field"), s.text("label_field")};
  } else if (kind == "idx") {
    o.source = IdxOptions{path_of(s, "images"), path_of(s, "labels"), s.text("image_field"),
                          s.text("label_field"), s.texts("classes")};
  } else if (kind == "csv") {
    CsvFileOptions c;
    read_paths(s, c.path, c.more_paths);
    read_csv_format(s, c);
    c.header = s.boolean("header");
    c.column_names = s.texts("column_names");
    for (const Section& f : s.sections("fields")) c.fields.push_back(read_csv_field(f));
    o.source = c;
  } else if (kind == "jsonl" || kind == "lines" || kind == "tar" || kind == "parquet" ||
             kind == "slots") {
    CsvFileOptions c;
    c.format = kind == "jsonl"   ? RecordFormat::kJsonl
               : kind == "lines" ? RecordFormat::kLines
               : kind == "tar"   ? RecordFormat::kTar
               : kind == "slots" ? RecordFormat::kSlots
                                 : RecordFormat::kParquet;
    if (c.format == RecordFormat::kLines) {
      c.line_files = text_map(s, "files", true);
      if (c.line_files.empty())
        throw Error(ErrorCode::kConfig, "lines: give files", s.node().location());
    } else {
      read_paths(s, c.path, c.more_paths);
    }
    if (c.format == RecordFormat::kSlots) c.column_names = s.texts("slots");
    for (const Section& f : s.sections("fields")) {
      c.fields.push_back(read_csv_field(f));
      // The values of a slot stand as they do in the file.
      if (c.format == RecordFormat::kSlots && !f.has("separator")) c.fields.back().separator = " ";
    }
    o.source = c;
  } else if (kind == "text") {
    o.source = read_text(s);
  } else if (kind == "tokens") {
    o.source = read_tokens(s);
  } else if (kind == "images") {
    ImageFolderOptions i;
    i.path = path_of(s, "path");
    if (s.has("files"))
      for (const Node& n : s.at("files").items) i.files.push_back(resolved_path(n));
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
    b.dtype = s.text("dtype") == "uint16" ? DType::kU16 : DType::kU8;
    b.reduce_16_bit = s.boolean("reduce_16_bit");
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
  if (s.has("split_stratify")) o.split_stratify = s.text("split_stratify");
  if (s.has("split_group")) o.split_group = s.text("split_group");
  if (s.has("split_time")) o.split_time = s.text("split_time");
  if (s.has("folds")) o.folds = s.integer("folds");
  if (s.has("fold")) {
    o.fold = s.integer("fold");
    if (o.folds == 0)
      throw Error(ErrorCode::kConfig, "fold: has no effect without folds", s.location("fold"));
  }
  return o;
}

}  // namespace paddle::data
