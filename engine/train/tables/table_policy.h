#pragma once
// The section `tables:` of a config: policies of tables by the patterns of their names.

#include <string>
#include <vector>

#include "config/schema.h"
#include "tables/row_policy.h"

namespace paddle::train {

/// The policy of the tables whose names a pattern matches (`*` and `?`).
struct TablePolicy {
  std::string pattern;
  tables::RowPolicy policy;
};

config::Spec table_policies_spec();
/// In the order of the config; `defaults` is the base of the others and comes last, for all tables.
/// kConfig, with the place, for values that are mutually exclusive.
std::vector<TablePolicy> read_table_policies(const config::Section& config,
                                             config::Diagnostics& diagnostics);

}  // namespace paddle::train
