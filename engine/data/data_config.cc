#include "data/data_config.h"

#include <algorithm>

#include "config/overrides.h"
#include "config/sections.h"
#include "data/config/dataset_config.h"
#include "data/config/transform_config.h"
#include "data/dataset_kind.h"
#include "data/datasets/bad_samples.h"
#include "data/named_dataset.h"
#include "data/related_datasets.h"

namespace paddle::data {
using config::Node;
using config::Schema;
using config::Section;
using config::Spec;

void register_section() {
  config::register_section({.name = "data",
                            .owner = "paddle-train",
                            .doc = "what is trained and validated on",
                            .schema = data_schema,
                            .prepare = [](Node& section, config::Diagnostics& diagnostics) {
                              if (section.is_map()) expand_datasets(section, diagnostics);
                            }});
}

Schema data_schema() {
  Schema s;
  s.add("batch_size", Spec::integer().at_least(1).at_most(1 << 24).fallback("32").doc(
                          "samples of one update, over all micro-batches and processes"));
  s.add("train", dataset_spec().required().doc("the data to train on"));
  s.add("valid", dataset_spec().or_else(like_spec()).doc("the data to validate on"));
  s.add("test",
        dataset_spec().or_else(like_spec()).doc("the data to evaluate on once, at the end"));
  Spec passes = passes_spec();
  passes.doc("data.train arrives day by day or hour by hour, in files that the path names");
  s.add("passes", std::move(passes));
  s.add("split", Spec::map_of(Spec::real().above(0).at_most(1))
                     .doc("shares of data.train by name: {train: 0.9, valid: 0.1}"));
  s.add("transforms",
        Spec::list(transform_spec()).fallback("[]").doc("preprocessing of samples, in order"));
  s.add("augment", Spec::list(transform_spec())
                       .fallback("[]")
                       .doc("transforms of training data only, before the others"));
  s.add("batch_augment",
        Spec::list(batch_transform_spec())
            .fallback("[]")
            .doc("training data only: mixing of the samples of a batch, after all transforms"));
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
                             "texts: number of batches among which samples are grouped by length"));
  s.add("drop_last", Spec::boolean().fallback("false").doc("drop a last batch that is not full"));
  s.add("workers",
        Spec::integer().at_least(0).at_most(256).fallback("1").doc("threads that load ahead"));
  s.add("prefetch_bytes", Spec::integer()
                              .at_least(1)
                              .fallback("268435456")
                              .doc("memory for batches that are loaded ahead"));
  s.add("valid_batch_size",
        Spec::integer().at_least(1).at_most(1 << 24).doc("default: batch_size"));
  s.add(
      "on_bad_sample",
      Spec::word({"error", "skip", "keep"})
          .fallback("error")
          .doc("what a bad sample does; keep is for boxes outside of images, mask values that are "
               "not listed and empty labels"));
  s.add("check_seconds", Spec::real().at_least(0).fallback("1").doc(
                             "time limit of the data check before the first step; 0: no check"));
  s.add("max_bad_rate", Spec::real().at_least(0).at_most(1).fallback("0.01").doc(
                            "share of skipped samples above which training stops"));
  s.add("nan",
        Spec::word({"error", "skip", "keep"}).fallback("error").doc("what a sample with NaN does"));
  return s;
}

namespace {

/// The paths of one dataset, and of the sources of a mixture.
void make_paths_absolute(Node& dataset, config::Diagnostics& diagnostics) {
  const auto absolute = [&](Node& node) {
    if (node.is_scalar() && !node.text.empty())
      diagnostics.guard([&] { node.text = resolved_path(node); });
  };
  const Node* name = dataset.find("kind");
  const auto kind = dataset_kinds().find(name ? name->text : "");
  for (const std::string& key : kind ? kind->path_keys : std::vector<std::string>{})
    if (Node* n = dataset.find(key)) {
      absolute(*n);
      for (Node& item : n->items) absolute(item);
      for (config::Entry& e : n->entries) absolute(e.value);
    }
  if (Node* fields = dataset.find("fields"))
    for (Node& field : fields->items)
      for (const char* key : {"vocabulary_file", "tokenizer", "folder"})
        if (Node* n = field.find(key)) absolute(*n);
  if (Node* sources = dataset.find("sources"))
    for (config::Entry& e : sources->entries)
      if (e.value.is_map()) make_paths_absolute(e.value, diagnostics);
}

}  // namespace

void make_data_paths_absolute(Node& section, config::Diagnostics& diagnostics) {
  if (Node* passes = section.find("passes"); passes && passes->is_map())
    if (Node* path = passes->find("path"); path && path->is_scalar())
      diagnostics.guard([&] { path->text = resolved_path(*path); });
  for (const char* part : {"train", "valid", "test"})
    if (Node* dataset = section.find(part); dataset && dataset->is_map())
      make_paths_absolute(*dataset, diagnostics);
}

namespace {

/// Fields must mean the same in all passes.
void check_passes(const Section& s, const DataConfig& config) {
  const auto reject = [&](const std::string& why) {
    throw Error(ErrorCode::kConfig, "data.passes: " + why, s.location("passes"));
  };
  const auto* const records = std::get_if<CsvFileOptions>(&config.train.source);
  if (!records)
    reject("data.train must be of a kind of records with columns, such as slots or csv");
  for (const char* key : {"sampler", "class_weights", "split"})
    if (s.has(key)) reject(str("data.", key, " looks at all samples, which passes do not have"));
  if (!config.train.split.empty() || config.train.folds > 0 || config.train.begin ||
      config.train.end)
    reject("data.train cannot be divided by split, folds or range");
  for (const CsvField& field : records->fields) {
    const bool has_words = !field.vocabulary.empty() || !field.vocabulary_file.empty();
    const char* learned = nullptr;
    if (field.kind == ColumnKind::kNumeric && field.scaling != Scaling::kNone &&
        field.shift.empty())
      learned = "scaling; state shift and factor";
    if (field.kind == ColumnKind::kCategorical && field.buckets == 0 && !has_words)
      learned = "a vocabulary; state buckets, vocabulary or vocabulary_file";
    if (((field.kind == ColumnKind::kText && !field.tokenizer.given()) ||
         field.kind == ColumnKind::kMultiLabel) &&
        !has_words)
      learned = "a vocabulary; state vocabulary or vocabulary_file";
    if (learned)
      reject(str("the field '", field.name, "' would learn from the training rows ", learned));
  }
}

/// Reads `on_bad_sample` and makes the datasets follow it.
BadSamplePolicy read_policy(const Section& s, DataConfig& config) {
  const std::string& name = s.text("on_bad_sample");
  if (name == "error") return BadSamplePolicy::kError;
  const bool keeps = name == "keep";
  bool any = false;
  const auto apply = [&](DatasetOptions& part) {
    if (keeps)
      any = keep_bad_samples(part) || any;
    else
      skip_bad_records(part);
  };
  apply(config.train);
  if (config.valid) apply(*config.valid);
  if (config.test) apply(*config.test);
  if (keeps && !any)
    throw Error(ErrorCode::kConfig,
                "data.on_bad_sample: keep is for boxes outside of images, mask values that are not "
                "listed and empty labels, and the data has no boxes, masks with `values` or "
                "categorical fields; use error or skip (NaN is kept by `nan: keep`)",
                s.location("on_bad_sample"));
  return keeps ? BadSamplePolicy::kKeep : BadSamplePolicy::kSkip;
}

}  // namespace

DataConfig read_data(const Section& s, uint64_t seed, config::Diagnostics& diagnostics) {
  DataConfig c;
  bool has_train = false;
  diagnostics.guard([&] {
    c.train = read_dataset(s.section("train"));
    has_train = true;
  });
  if (s.has("passes"))
    diagnostics.guard([&] {
      c.passes = read_passes(s.section("passes"));
      if (has_train) check_passes(s, c);
    });
  if (s.has("valid")) diagnostics.guard([&] { c.valid = read_dataset(s.section("valid")); });
  if (s.has("test")) diagnostics.guard([&] { c.test = read_dataset(s.section("test")); });
  if (const auto kind = dataset_kinds().find(kind_of(c.train));
      kind && kind->is_stream && s.boolean("shuffle"))
    diagnostics.add(ErrorCode::kConfig,
                    str("data.shuffle: the samples of ", kind->name,
                        " come in an order of their own; set data.shuffle: false"),
                    s.at("train").location());
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
  for (const char* part : {"train", "valid", "test"}) {
    const Node* weights = s.has(part) ? s.at(part).find("weights") : nullptr;
    if (!weights || weights->is_null()) continue;
    if (std::string_view(part) != "train")
      diagnostics.add(ErrorCode::kConfig,
                      str("data.", part, ".weights: have no effect, each sample is evaluated once"),
                      weights->location());
    else if (!s.boolean("shuffle"))
      diagnostics.add(ErrorCode::kConfig,
                      "data.train.weights: have no effect with shuffle: false, which takes each "
                      "sample once and in order",
                      weights->location());
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
  diagnostics.guard([&] { l.on_bad_sample = read_policy(s, c); });
  l.max_bad_rate = s.real("max_bad_rate");
  c.check_seconds = s.real("check_seconds");
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
  Node mixing = s.at("batch_augment");
  for (Node& item : mixing.items)
    diagnostics.guard([&] {
      l.batch_transforms.push_back(read_batch_transform(item, "data.batch_augment", diagnostics));
    });
  return c;
}

namespace {

/// Reads the section of a document whose other keys were checked into `diagnostics`; raises.
DataConfig read_checked(Node& document, config::Diagnostics& diagnostics) {
  Node* section = document.find("data");
  if (section) {
    diagnostics.guard([&] {
      if (section->is_map()) expand_datasets(*section, diagnostics);
      data_schema().resolve(*section, "data", diagnostics);
      if (section->is_map()) make_data_paths_absolute(*section, diagnostics);
    });
  } else {
    diagnostics.add(ErrorCode::kConfig, "the config has no 'data'", document.location());
  }
  diagnostics.raise();
  const Node* seed = document.find("seed");
  DataConfig data =
      read_data(Section(*section), seed ? static_cast<uint64_t>(seed->as_int()) : 0, diagnostics);
  diagnostics.raise();
  return data;
}

}  // namespace

DataConfig read_data_section(Node document) {
  config::Diagnostics diagnostics;
  config::check_other_sections(document, {"data"}, diagnostics);
  return read_checked(document, diagnostics);
}

DataConfig read_config_data(const std::string& path) {
  config::Diagnostics diagnostics;
  Node document = config::read_extended(path, diagnostics);
  config::resolve_references(document, diagnostics);
  config::check_other_keys(document, {"data"}, diagnostics);
  return read_checked(document, diagnostics);
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
