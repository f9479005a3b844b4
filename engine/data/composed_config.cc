// Datasets that are made of others or of windows: series, chat and mixture.

#include <algorithm>

#include "data/dataset_config.h"

namespace paddle::data {

using config::Schema;
using config::Section;
using config::Spec;

namespace {

Spec paths(const char* doc) {
  return Spec::list(Spec::text()).or_else(Spec::text()).required().doc(doc);
}

}  // namespace

void add_series_keys(Schema& s) {
  const Spec names = Spec::list(Spec::text()).or_else(Spec::text());
  Spec targets = names, others = names, known = names;
  s.add("path", paths("CSV, JSON lines or Parquet files, rows in the order of time"));
  s.add("targets", targets.required().doc("columns to forecast"));
  s.add("covariates", others.fallback("[]").doc("columns known up to the present"));
  s.add("known", known.fallback("[]").doc("columns known for the future, too"));
  s.add("group", Spec::text().doc("column that tells several series apart"));
  s.add("history", Spec::integer().at_least(1).required().doc("rows of the past"));
  s.add("horizon", Spec::integer().at_least(1).fallback("1").doc("rows to forecast"));
  s.add("stride", Spec::integer().at_least(1).fallback("1").doc("rows between windows"));
  s.add("overlap_history", Spec::boolean().fallback("true").doc(
                               "the history of a part may lie in the part before it"));
  s.add("scaling", Spec::word({"none", "min_max", "standard"})
                       .fallback("none")
                       .doc("scale columns with statistics of the training rows"));
}

SeriesOptions read_series(const Section& s) {
  SeriesOptions o;
  read_paths(s, o.file);
  const std::string& path = o.file.path;
  o.file.format = path.ends_with(".jsonl") || path.ends_with(".ndjson") ? RecordFormat::kJsonl
                  : path.ends_with(".parquet")                          ? RecordFormat::kParquet
                                                                        : RecordFormat::kCsv;
  o.targets = s.texts("targets");
  o.covariates = s.texts("covariates");
  o.known = s.texts("known");
  if (s.has("group")) o.group = s.text("group");
  o.history = s.integer("history");
  o.horizon = s.integer("horizon");
  o.stride = s.integer("stride");
  o.overlap_history = s.boolean("overlap_history");
  o.scaling = s.text("scaling") == "min_max"    ? Scaling::kMinMax
              : s.text("scaling") == "standard" ? Scaling::kStandard
                                                : Scaling::kNone;
  return o;
}

void add_chat_keys(Schema& s) {
  s.add("path", paths("JSON lines: a conversation or an instruction a line"));
  s.add("tokenizer", Spec::text().required().doc("model folder, tokenizer.json or .model file"));
  s.add("chat_template", Spec::text().doc("Jinja file; default: the tokenizer's template"));
  s.add("messages", Spec::text().fallback("messages").doc("key with the messages"));
  s.add("prompt", Spec::text().doc("key with the text of an instruction, instead of messages"));
  s.add("completion", Spec::text().doc("key with the answer to it"));
  s.add("context", Spec::integer().at_least(2).at_most(1 << 20).fallback("1024").doc(
                       "tokens of a sample; longer records are cut"));
  s.add("pack", Spec::boolean().fallback("true").doc("several records in one sample"));
  s.add("train_on",
        Spec::word({"assistant", "all"}).fallback("assistant").doc("the tokens that are targets"));
}

ChatOptions read_chat(const Section& s) {
  CsvFileOptions files;
  read_paths(s, files);
  ChatOptions o;
  o.path = files.path;
  o.more_paths = files.more_paths;
  o.tokenizer = path_of(s, "tokenizer");
  o.chat_template = path_of(s, "chat_template");
  o.messages = s.text("messages");
  if (s.has("prompt")) o.prompt = s.text("prompt");
  if (s.has("completion")) o.completion = s.text("completion");
  o.context = s.integer("context");
  o.pack = s.boolean("pack");
  o.train_all = s.text("train_on") == "all";
  return o;
}

void add_mixture_keys(Schema& s, Spec source) {
  s.add("sources", Spec::map_of(source).required().doc("datasets of the same fields, by name"));
  s.add("weights", Spec::map_of(Spec::real().above(0))
                       .doc("how often each source is drawn; default: each sample once an epoch"));
  s.add("samples", Spec::integer().at_least(0).fallback("0").doc(
                       "draws of an epoch with weights; 0: as many as there are samples"));
}

MixtureOptions read_mixture(const Section& s) {
  MixtureOptions o;
  std::vector<std::string> names;
  for (const config::Entry& e : s.at("sources").entries) {
    names.push_back(e.key.text);
    o.sources.emplace_back(e.key.text,
                           std::make_shared<const DatasetOptions>(read_dataset(Section(e.value))));
  }
  if (o.sources.empty())
    throw Error(ErrorCode::kConfig, "mixture: `sources` is empty", s.location("sources"));
  o.samples = s.integer("samples");
  if (!s.has("weights")) {
    if (o.samples > 0)
      throw Error(ErrorCode::kConfig, "samples: has no effect without weights",
                  s.location("samples"));
    return o;
  }
  o.weights.assign(names.size(), 0);
  for (const config::Entry& e : s.at("weights").entries) {
    const auto at = std::find(names.begin(), names.end(), e.key.text);
    if (at == names.end())
      throw Error(ErrorCode::kConfig,
                  "weights: no source '" + e.key.text + "'" + did_you_mean(e.key.text, names) +
                      "; there are: " + join(names, ", "),
                  e.key.location());
    o.weights[static_cast<size_t>(at - names.begin())] = e.value.as_double();
  }
  for (size_t i = 0; i < names.size(); ++i)
    if (o.weights[i] == 0)
      throw Error(ErrorCode::kConfig, "weights: the source '" + names[i] + "' has none",
                  s.location("weights"));
  return o;
}

}  // namespace paddle::data
