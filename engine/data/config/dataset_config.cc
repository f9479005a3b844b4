#include "data/config/dataset_config.h"

#include <algorithm>
#include <cstdlib>
#include <filesystem>

#include "base/files.h"
#include "config/overrides.h"
#include "data/data_folder.h"
#include "data/dataset_kind.h"
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

std::vector<std::pair<std::string, std::string>> text_map(const Section& s, const char* key,
                                                          bool paths) {
  std::vector<std::pair<std::string, std::string>> out;
  if (!s.has(key)) return out;
  for (const config::Entry& e : s.at(key).entries)
    out.push_back({e.key.text, paths ? resolved_path(e.value) : e.value.text});
  return out;
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

/// The kinds that `is_among` chooses, each with its keys and those of all kinds.
Spec spec_of(bool sources_only) {
  std::vector<std::pair<std::string, Schema>> kinds;
  for (const auto& kind : dataset_kinds().all())
    if (kind->is_source || !sources_only)
      kinds.emplace_back(kind->name, kind->has_parts ? with_part(kind->keys()) : kind->keys());
  return Spec::choice("kind", std::move(kinds));
}

}  // namespace

Spec dataset_spec() { return spec_of(false); }

Spec source_spec() { return spec_of(true); }

DatasetOptions read_dataset(const Section& s) {
  DatasetOptions o;
  const auto kind = dataset_kinds().find(s.text("kind"));
  if (!kind)
    throw Error(ErrorCode::kConfig, str("unknown kind of dataset '", s.text("kind"), "'"),
                s.node().location());
  o.source = kind->read(s);
  if (!kind->has_parts) return o;
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
