#pragma once
// The section `tables:` of a config: how tables are kept and trained, by the patterns of their
// names.

#include <optional>
#include <string>
#include <vector>

#include "base/kind_options.h"
#include "config/schema.h"
#include "lang/eval/host.h"
#include "optim/optimizer_kind.h"
#include "tables/row_policy.h"

namespace paddle::train {

/// An optimizer of tables only. Its rates follow the schedule of the config's optimizer.
struct TableOptimizer {
  optim::OptimizerRule rule = {};
  double lr = 0, weight_decay = 0;
};

/// What is stated for the tables whose names a pattern matches (`*` and `?`).
struct TablePolicy {
  std::string pattern = {};
  tables::RowPolicy policy = {};
  std::optional<DType> key = {};
  std::optional<lang::Initializer> init = {};  ///< in place of weight_init
  std::optional<TableOptimizer> optimizer = {};
  /// Where their rows are kept, one of `table_kinds`; nothing: as train.tables says.
  std::optional<KindChoice> store = {};
  /// Whether it says anything.
  bool says_something() const {
    return key || init || optimizer || store || policy.observes() || policy.bounds;
  }
};

config::Spec table_policies_spec();
/// In the order of the config; `defaults` is the base of the others and comes last, for all tables.
/// kConfig, with the place, for values that are mutually exclusive.
std::vector<TablePolicy> read_table_policies(const config::Section& config,
                                             config::Diagnostics& diagnostics);
/// The first policy whose pattern matches a table; null: there is none.
const TablePolicy* find_policy(const std::vector<TablePolicy>& policies, const std::string& table);

}  // namespace paddle::train
