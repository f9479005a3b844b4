#include "train/tables/table_policy.h"

#include <algorithm>
#include <charconv>
#include <cmath>

#include "base/text.h"
#include "config/kind_keys.h"
#include "lang/layers/initializer_words.h"
#include "lang/syntax/parser.h"
#include "program/row_table.h"

namespace paddle::train {
namespace {

constexpr const char* kAdagrad = "adagrad";
constexpr double kRowInitial = 3;
constexpr double kWideScore = 10;

using config::Schema;
using config::Section;
using config::Spec;

/// The optimizers whose updates of a row read nothing but this row.
Spec optimizer_spec() {
  std::vector<std::pair<std::string, Schema>> schemas;
  for (const auto& kind : optim::optimizer_kinds().all()) {
    if (kind->is_minimizer || kind->needs_whole_parameters) continue;
    Schema s;
    s.add("lr", Spec::real().at_least(0).fallback(kind->lr).doc(
                    "base learning rate of the table, which the schedule's factor multiplies"));
    s.add("weight_decay", Spec::real().at_least(0).fallback("0").doc("weight decay of the rows"));
    s.add("bounds",
          Spec::list(Spec::real()).length(2, 2).doc("least and largest weight after an update"));
    s.add("scale", Spec::word({"none", "show"})
                       .fallback("none")
                       .doc("show: gradients are divided by the shows of the step"));
    s.add_all(kind->keys);
    if (kind->name == kAdagrad) {
      s.add("per", Spec::word({"weight", "row"})
                       .fallback("weight")
                       .doc("whether each weight has a sum of squares, or each row one sum of "
                            "their means"));
      s.add("initial", Spec::real().above(0).doc("per: row: squares that the rate begins with, "
                                                 "rate * sqrt(initial / (initial + sum)); "
                                                 "default: 3. per: weight: initial_accumulator"));
    }
    schemas.emplace_back(kind->name, std::move(s));
  }
  return Spec::choice("name", std::move(schemas));
}

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
  Schema after;
  after.add("score", Spec::real().fallback("10").doc("score from which the columns are in use"));
  Schema wide;
  wide.add("dim", Spec::integer().at_least(1).required().doc(
                      "how many columns, the last ones of the table's"))
      .add("after",
           Spec::map(after).fallback("null").doc("when a row uses them; default: a score of 10"));
  Schema s;
  Spec optimizer = optimizer_spec();
  optimizer.doc("the optimizer of the table; default: the config's");
  s.add("key", Spec::word({"int64", "uint64"}).doc("type of the keys, which the model must have"))
      .add("init", Spec::text().doc("how rows begin, in place of weight_init: zeros, "
                                    "uniform(-1e-4, 1e-4), normal(0, 0.01)"))
      .add("optimizer", std::move(optimizer))
      .add("wide", Spec::map(wide).fallback("null").doc(
                       "columns that are zeros and are not trained until the row is in use"));
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

/// A number of an initializer: `0.5`, `-1e-4`.
double number_of(const lang::Expr& e) {
  if (e.kind == lang::ExprKind::kInteger) return static_cast<double>(e.integer);
  if (e.kind == lang::ExprKind::kReal) return e.real;
  if (e.kind == lang::ExprKind::kUnary && e.operators[0] != "not")
    return (e.operators[0] == "-" ? -1 : 1) * number_of(*e.children[0]);
  fail(ErrorCode::kConfig, "expected a number");
}

/// `uniform(-1e-4, 1e-4)`, a word without arguments, or a number.
lang::Initializer initializer_of(const config::Node& node) {
  const lang::ExprPtr e = lang::parse_expression(node);
  const bool is_call = e->kind == lang::ExprKind::kCall;
  const lang::Expr& word = is_call ? *e->children[0] : *e;
  lang::Initializer out;
  if (word.kind == lang::ExprKind::kName) {
    if (!lang::is_initializer_word(word.text))
      fail(ErrorCode::kConfig, "'", word.text, "' is not an initializer",
           did_you_mean(word.text, lang::initializer_words()));
    lang::ValueList positional;
    lang::NamedValues named;
    for (const lang::Argument& argument : e->arguments)
      if (argument.name.empty())
        positional.emplace_back(number_of(*argument.value));
      else
        named.emplace_back(argument.name, lang::Value(number_of(*argument.value)));
    out = lang::make_initializer(word.text, positional, named);
  } else {
    out = lang::Initializer::constant(number_of(*e));
  }
  if (!lang::makes_rows(out))
    fail(ErrorCode::kConfig, out.text(),
         " depends on the number of rows; expected zeros, ones, a number, normal, "
         "truncated_normal or uniform");
  return out;
}

/// The optimizer of a table, and what else it changes of updates.
void read_optimizer(const Section& s, TablePolicy& out) {
  tables::RowPolicy& policy = out.policy;
  policy.bounds.reset();
  policy.row_moment.reset();
  if (s.has("bounds")) {
    const std::vector<double> bounds = s.reals("bounds");
    if (!(bounds[0] < bounds[1]))
      throw Error(ErrorCode::kConfig,
                  str("optimizer.bounds: ", format_double(bounds[0]), " is not below ",
                      format_double(bounds[1])),
                  s.location("bounds"));
    policy.bounds = {bounds[0], bounds[1]};
  }
  policy.divides_by_show = s.text("scale") == "show";
  config::Node keys = s.node();
  if (s.text("name") == kAdagrad) {
    if (s.text("per") == "row")
      policy.row_moment = s.has("initial") ? s.real("initial") : kRowInitial;
    else if (s.has("initial"))
      keys.set("initial_accumulator", s.at("initial"));
  }
  out.optimizer = {optim::read_rule(Section(keys)), s.real("lr"), s.real("weight_decay")};
}

/// Runs `read`; what it rejects has the place of a key.
template <class Read>
void at_key(const Section& section, const char* key, const Read& read) {
  try {
    read();
  } catch (const Error& error) {
    throw Error(ErrorCode::kConfig, str(key, ": ", error.message()), section.location(key));
  }
}

/// Sections that are there replace those of `base`.
TablePolicy policy_of(const Section& table, TablePolicy whole) {
  tables::RowPolicy& base = whole.policy;
  if (table.has("key")) whole.key = parse_dtype(table.text("key"));
  if (table.has("init"))
    at_key(table, "init", [&] { whole.init = initializer_of(table.at("init")); });
  if (table.has("optimizer")) read_optimizer(table.section("optimizer"), whole);
  if (table.has("wide")) {
    const Section s = table.section("wide");
    base.wide_columns = s.integer("dim");
    base.wide_score = s.has("after") ? s.section("after").real("score") : kWideScore;
  }
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
  if (table.has("store"))  // a kind that is not there is rejected by the schema
    if (const auto kind = program::table_kinds().find(table.text("store")))
      whole.store = KindChoice{kind->name, config::options_of(kind->keys, table)};
  return whole;
}

void check(const std::string& path, const tables::RowPolicy& policy, const SourceLocation& where,
           config::Diagnostics& diagnostics) {
  if (policy.show) return;
  const char* const needed = policy.entry_score        ? "entry.score"
                             : policy.wide_columns > 0 ? "wide"
                             : policy.divides_by_show  ? "optimizer.scale: show"
                             : policy.score_below      ? "evict.score_below"
                             : policy.max_rows > 0     ? "evict.max_rows"
                             : policy.decay != 1       ? "evict.decay"
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
  // Without `store` rows are kept as train.tables says.
  std::vector<std::pair<std::string, Schema>> stores;
  for (const auto& kind : program::table_kinds().all()) {
    Schema schema = table_schema();
    stores.emplace_back(kind->name, schema.add_all(config::schema_of(kind->keys)));
  }
  Spec spec = Spec::map_of(Spec::choice("store", std::move(stores)).otherwise(table_schema()));
  spec.fallback("{}").doc(
      "how the rows of tables (sparse_embedding) begin and are trained, which keys get rows, which "
      "rows are removed and where they are kept (store, with the keys of the kind), by name or "
      "pattern of a table; the first match counts. 'defaults' is the base of all");
  return spec;
}

std::vector<TablePolicy> read_table_policies(const Section& config,
                                             config::Diagnostics& diagnostics) {
  constexpr const char* kDefaults = "defaults";
  std::vector<TablePolicy> out;
  const config::Node& node = config.at("tables");
  TablePolicy base;
  const config::Node* const defaults = node.find(kDefaults);
  if (defaults && defaults->is_map()) {
    diagnostics.guard([&] {
      base = policy_of(Section(*defaults), {});
      check("tables.defaults", base.policy, defaults->location(), diagnostics);
    });
  }
  for (const config::Entry& entry : node.entries) {
    if (entry.key.text == kDefaults || !entry.value.is_map()) continue;
    diagnostics.guard([&] {
      TablePolicy& policy = out.emplace_back(policy_of(Section(entry.value), base));
      policy.pattern = entry.key.text;
      check("tables." + entry.key.text, policy.policy, entry.key.location(), diagnostics);
    });
  }
  base.pattern = "*";
  if (base.says_something()) out.push_back(base);
  return out;
}

const TablePolicy* find_policy(const std::vector<TablePolicy>& policies, const std::string& table) {
  const auto found = std::find_if(policies.begin(), policies.end(), [&](const TablePolicy& each) {
    return matches_pattern(each.pattern, table);
  });
  return found == policies.end() ? nullptr : &*found;
}

}  // namespace paddle::train
