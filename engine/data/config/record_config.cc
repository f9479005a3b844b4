// The keys of records with columns: how columns become fields, and the format of CSV files.

#include <algorithm>
#include <filesystem>
#include <map>

#include "data/config/dataset_config.h"
#include "data/config/transform_config.h"
#include "data/dataset_kind.h"
#include "formats/compressed/compressed.h"

namespace paddle::data {

using config::Node;
using config::Schema;
using config::Section;
using config::Spec;

namespace {

Schema csv_field() {
  Schema s;
  s.add("name", Spec::text().required().doc("name of the field"));
  s.add("columns", Spec::list(Spec::text()).or_else(Spec::text()).doc("names, 'I1..I13' or 'C*'"));
  s.add("kind",
        Spec::word({"numeric", "categorical", "text", "image", "mask", "multi_label", "audio",
                    "numbers", "keys"})
            .fallback("numeric")
            .doc("numbers as they are, values looked up in a vocabulary, the tokens of a text, a "
                 "file that the cell names, a list in the cell, or keys of tables"));
  s.add("folder", Spec::text().doc("files: what paths are relative to; default: the data file"));
  s.add("channels",
        Spec::integer().at_least(1).at_most(3).doc("image: 1: grayscale, 3: RGB; default: 3"));
  s.add("reduce_16_bit", Spec::boolean().doc("image: read 16-bit images as 8-bit ones"));
  s.add("values",
        Spec::any().doc("mask: the name of each stored value, in the order of the classes"));
  s.add("ignore", Spec::list(Spec::integer()).doc("mask: stored values without a class (-100)"));
  s.add("sample_rate",
        Spec::integer().at_least(1).doc("audio: samples a second; other files are resampled"));
  s.add("separator", Spec::text().doc("lists: what separates their items; default: |"));
  s.add("most", Spec::integer().at_least(1).at_most(1 << 20).doc(
                    "keys: a cell is a list, of which the first keys count, up to this number; "
                    "default: one key a column"));
  s.add("shape", Spec::list(Spec::integer().at_least(1)).doc("numbers: shape of the field"));
  s.add("tokens",
        Spec::word({"words", "characters", "spaces"}).doc("text: what a token is; default: words"));
  s.add("tokenizer", Spec::text().doc("text: subwords of a model folder, tokenizer.json or .model "
                                      "file, instead of words and a vocabulary"));
  s.add("special_tokens",
        Spec::boolean().doc("tokenizer: add its beginning and end tokens; default: true"));
  s.add("lowercase", Spec::boolean().doc("text: convert to lower case; default: true"));
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

/// Keys are integers of 64 bits. One for each column is a field of numbers.
void read_keys(const Section& s, CsvField& f) {
  if (s.has("most")) {
    f.most = s.integer("most");
  } else {
    if (s.has("separator"))
      throw Error(ErrorCode::kConfig,
                  str("field '", f.name, "': `separator` has no effect on keys without `most`"),
                  s.location("separator"));
    f.kind = ColumnKind::kNumeric;
  }
  if (!f.dtype) f.dtype = DType::kI64;
  if (*f.dtype != DType::kI64 && *f.dtype != DType::kU64)
    throw Error(ErrorCode::kConfig,
                str("field '", f.name, "': keys are int64 or uint64, not ", paddle::text(*f.dtype)),
                s.location("dtype"));
  const std::pair<const char*, bool> of_others[] = {{"log", f.log},
                                                    {"scaling", f.scaling != Scaling::kNone},
                                                    {"shift", !f.shift.empty()},
                                                    {"factor", !f.factor.empty()},
                                                    {"buckets", f.buckets > 0},
                                                    {"per_column", f.per_column},
                                                    {"vocabulary", !f.vocabulary.empty()},
                                                    {"vocabulary_file", !f.vocabulary_file.empty()},
                                                    {"unknown_is_zero", f.unknown_is_zero}};
  for (const auto& [key, is_given] : of_others)
    if (is_given)
      throw Error(ErrorCode::kConfig,
                  str("field '", f.name, "': `", key, "` has no effect with `kind: keys`"),
                  s.location(key));
}

}  // namespace

CsvField read_field(const Section& s) {
  CsvField f;
  f.name = s.text("name");
  if (s.has("columns")) f.columns = s.texts("columns");
  f.scalar = s.boolean("scalar");
  static const std::map<std::string, ColumnKind> kKinds = {
      {"numeric", ColumnKind::kNumeric}, {"categorical", ColumnKind::kCategorical},
      {"text", ColumnKind::kText},       {"image", ColumnKind::kImage},
      {"mask", ColumnKind::kMask},       {"multi_label", ColumnKind::kMultiLabel},
      {"audio", ColumnKind::kAudio},     {"numbers", ColumnKind::kNumbers},
      {"keys", ColumnKind::kKeys}};
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
      {"separator", {K::kMultiLabel, K::kNumbers, K::kKeys}},
      {"most", {K::kKeys}},
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
  if (f.kind == K::kKeys) read_keys(s, f);
  return f;
}

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

Spec fields_key() {
  return Spec::list(Spec::map(csv_field())).fallback("[]").doc("fields made of columns");
}

CsvFileOptions read_records(const Section& s, const std::string& kind) {
  CsvFileOptions o;
  o.format = kind;
  read_paths(s, o.path, o.more_paths);
  for (const Section& f : s.sections("fields")) o.fields.push_back(read_field(f));
  return o;
}

DatasetKind make_record_kind(
    std::string name, std::string doc, std::vector<std::string> endings,
    std::function<RecordSourcePtr(const CsvFileOptions& options, const std::string& path)> open) {
  DatasetKind kind;
  kind.name = name;
  kind.keys = [doc] {
    Schema s;
    s.add("path", paths_spec(doc.c_str())).add("fields", fields_key());
    return s;
  };
  kind.read = [name](const Section& s) -> DatasetSource { return read_records(s, name); };
  kind.open = std::move(open);
  kind.endings = std::move(endings);
  return kind;
}

Registry<DatasetKind>::Handle record_kind(const std::string& name) {
  auto kind = dataset_kinds().find(name);
  if (!kind || !kind->open)
    fail(ErrorCode::kConfig, "'", name, "' is not a kind of records with columns");
  return kind;
}

std::string record_kind_of(const std::string& path, const std::string& like) {
  const std::string ending =
      lowercase(std::filesystem::path(formats::uncompressed_name(path)).extension().string());
  const auto fits = [&](const DatasetKind& kind) {
    return std::find(kind.endings.begin(), kind.endings.end(), ending) != kind.endings.end();
  };
  if (const auto kind = dataset_kinds().find(like); kind && fits(*kind)) return like;
  for (const auto& kind : dataset_kinds().all())
    if (fits(*kind)) return kind->name;
  return like;
}

}  // namespace paddle::data
