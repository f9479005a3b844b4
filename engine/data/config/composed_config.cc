// Datasets that are made of others or of windows: series, mixture, and those of descriptions.

#include <algorithm>

#include "data/config/dataset_config.h"
#include "data/dataset_kind.h"
#include "data/named_dataset.h"

namespace paddle::data {

using config::Schema;
using config::Section;
using config::Spec;

namespace {

Schema series_keys() {
  Schema s;
  const Spec names = Spec::list(Spec::text()).or_else(Spec::text());
  Spec targets = names, others = names, known = names;
  s.add("path",
        paths_spec("CSV, JSON lines or Parquet files, rows in the order of time, or with `time`"));
  s.add("targets", targets.required().doc("columns to forecast"));
  s.add("covariates", others.fallback("[]").doc("columns whose future values are unknown"));
  s.add("known", known.fallback("[]").doc("columns whose future values are known"));
  s.add("group", Spec::text().doc("column that identifies the series"));
  s.add("time", Spec::text().doc(
                    "column of timestamps, which orders the rows; default: the order of the file"));
  add_csv_format_keys(s);
  s.add("history", Spec::integer().at_least(1).required().doc("rows of the past"));
  s.add("horizon", Spec::integer().at_least(1).fallback("1").doc("rows to forecast"));
  s.add("stride", Spec::integer().at_least(1).fallback("1").doc("rows between windows"));
  s.add("overlap_history", Spec::boolean().fallback("true").doc(
                               "the history of a part may lie in the part before it"));
  s.add("scaling", Spec::word({"none", "min_max", "standard"})
                       .fallback("none")
                       .doc("scale columns with statistics of the training rows"));
  return s;
}

DatasetSource read_series(const Section& s) {
  SeriesOptions o;
  read_paths(s, o.file.path, o.file.more_paths);
  o.file.format = record_kind_of(o.file.path, "csv");
  o.targets = s.texts("targets");
  o.covariates = s.texts("covariates");
  o.known = s.texts("known");
  if (s.has("group")) o.group = s.text("group");
  if (s.has("time")) o.time = s.text("time");
  read_csv_format(s, o.file);
  o.history = s.integer("history");
  o.horizon = s.integer("horizon");
  o.stride = s.integer("stride");
  o.overlap_history = s.boolean("overlap_history");
  o.scaling = s.text("scaling") == "min_max"    ? Scaling::kMinMax
              : s.text("scaling") == "standard" ? Scaling::kStandard
                                                : Scaling::kNone;
  return o;
}

Schema mixture_keys() {
  Schema s;
  s.add("sources",
        Spec::map_of(source_spec()).required().doc("datasets of the same fields, by name"));
  s.add("weights", Spec::map_of(Spec::real().above(0))
                       .doc("how often each source is drawn; default: each sample once an epoch"));
  s.add("samples", Spec::integer().at_least(0).fallback("0").doc(
                       "draws of an epoch with weights; 0: as many as there are samples"));
  return s;
}

DatasetSource read_mixture(const Section& s) {
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

}  // namespace

DatasetKind series_kind() { return {.name = "series", .keys = series_keys, .read = read_series}; }

// expand_datasets has replaced those of configs by what their descriptions say.
DatasetKind dataset_kind() {
  return {.name = "dataset",
          .keys =
              [] {
                Schema s;
                add_named_keys(s);
                return s;
              },
          .read = [](const Section& s) -> DatasetSource {
            throw Error(ErrorCode::kConfig, "dataset: a description cannot refer to another one",
                        s.node().location());
          }};
}

DatasetKind mixture_kind() {
  return {.name = "mixture",
          .keys = mixture_keys,
          .read = read_mixture,
          .has_parts = false,
          .is_source = false};
}

}  // namespace paddle::data
