#include "train/tables/table_policy.h"

#include <charconv>
#include <cmath>

#include "base/text.h"

namespace paddle::train {
namespace {

using config::Schema;
using config::Section;
using config::Spec;

Schema table_schema() {
  Schema entry;
  entry
      .add("count", Spec::integer().at_least(1).at_most(1 << 24).fallback("1").doc(
                        "occurrences in training before a key has a row"))
      .add("score", Spec::real().doc("score of the shows and clicks before a key has a row"))
      .add("chance", Spec::real().above(0).at_most(1).doc(
                         "probability that a step with the key gives it a row"));
  Schema statistics;
  statistics
      .add("show", Spec::text().fallback("1").doc(
                       "shows of an occurrence: a number, or a field of the data"))
      .add("click", Spec::text().fallback("0").doc("clicks of an occurrence, in the same way"));
  Schema score;
  score.add("show", Spec::real().fallback("0.1").doc("weight of shows without clicks"))
      .add("click", Spec::real().fallback("1").doc("weight of clicks"));
  Schema evict;
  evict.add("score_below", Spec::real().doc("remove rows with a lower score"))
      .add("unseen_days", Spec::integer().at_least(1).at_most(1 << 20).doc(
                              "remove rows without a use in as many days"))
      .add("max_rows", Spec::integer().at_least(1).doc(
                           "keep about as many rows: in each shard those with the highest scores"))
      .add("decay",
           Spec::real().above(0).at_most(1).fallback("1").doc("factor of shows and clicks a day"));
  Schema s;
  s.add("entry", Spec::map(entry).fallback("null").doc("which keys get rows; default: all"))
      .add("statistics", Spec::map(statistics)
                             .fallback("null")
                             .doc("counts of shows and clicks that are kept with each row"))
      .add("score", Spec::map(score).fallback("null").doc("the score of a row: show * (shows - "
                                                          "clicks) + click * clicks"))
      .add("evict",
           Spec::map(evict).fallback("null").doc("which rows are removed when a day ends"));
  return s;
}

/// A number, or a field of the data.
tables::SampleNumber sample_number(const std::string& text) {
  double number = 0;
  const char* const end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data(), end, number);
  const bool is_number = error == std::errc() && rest == end && std::isfinite(number);
  return is_number ? tables::SampleNumber{number, ""} : tables::SampleNumber{0, text};
}

std::optional<double> real_of(const Section& section, const std::string& key) {
  return section.has(key) ? std::optional(section.real(key)) : std::nullopt;
}

/// Sections that are there replace those of `base`.
tables::RowPolicy policy_of(const Section& table, tables::RowPolicy base) {
  if (table.has("entry")) {
    const Section s = table.section("entry");
    base.entry_count = s.integer("count");
    base.entry_score = real_of(s, "score");
    base.entry_chance = real_of(s, "chance");
  }
  if (table.has("statistics")) {
    const Section s = table.section("statistics");
    base.show = sample_number(s.text("show"));
    base.click = sample_number(s.text("click"));
  }
  if (table.has("score")) {
    const Section s = table.section("score");
    base.show_weight = s.real("show");
    base.click_weight = s.real("click");
  }
  if (table.has("evict")) {
    const Section s = table.section("evict");
    base.score_below = real_of(s, "score_below");
    base.unseen_days = s.has("unseen_days") ? s.integer("unseen_days") : 0;
    base.max_rows = s.has("max_rows") ? s.integer("max_rows") : 0;
    base.decay = static_cast<float>(s.real("decay"));
  }
  return base;
}

void check(const std::string& path, const tables::RowPolicy& policy, const SourceLocation& where,
           config::Diagnostics& diagnostics) {
  if (policy.show) return;
  const char* const needed = policy.entry_score    ? "entry.score"
                             : policy.score_below  ? "evict.score_below"
                             : policy.max_rows > 0 ? "evict.max_rows"
                             : policy.decay != 1   ? "evict.decay"
                                                   : nullptr;
  if (needed)
    diagnostics.add(ErrorCode::kConfig,
                    str(path, ": ", needed,
                        " needs statistics, such as statistics: {show: 1, "
                        "click: label}"),
                    where);
}

}  // namespace

Spec table_policies_spec() {
  Spec spec = Spec::map_of(Spec::map(table_schema()));
  spec.fallback("{}").doc(
      "which keys of tables (sparse_embedding) get rows and which rows are removed, by name or "
      "pattern of a table; the first match counts. 'defaults' is the base of all");
  return spec;
}

std::vector<TablePolicy> read_table_policies(const Section& config,
                                             config::Diagnostics& diagnostics) {
  constexpr const char* kDefaults = "defaults";
  std::vector<TablePolicy> out;
  const config::Node& node = config.at("tables");
  tables::RowPolicy base;
  const config::Node* const defaults = node.find(kDefaults);
  if (defaults && defaults->is_map()) {
    base = policy_of(Section(*defaults), {});
    check("tables.defaults", base, defaults->location(), diagnostics);
  }
  for (const config::Entry& entry : node.entries) {
    if (entry.key.text == kDefaults || !entry.value.is_map()) continue;
    const tables::RowPolicy policy = policy_of(Section(entry.value), base);
    check("tables." + entry.key.text, policy, entry.key.location(), diagnostics);
    out.push_back({entry.key.text, policy});
  }
  if (base.observes()) out.push_back({"*", base});
  return out;
}

}  // namespace paddle::train
