#pragma once
// How a run makes its tables, as its config says: in workers, and in servers, which read the same
// config.

#include <memory>
#include <string>
#include <vector>

#include "optim/optimizer.h"
#include "program/row_table.h"
#include "ps/updates.h"
#include "train/tables/table_policy.h"

namespace paddle::train {

struct TableOpening {
  std::shared_ptr<const optim::Optimizer> rule;
  KindChoice kind = {"memory"};            ///< where rows are kept, unless a policy says otherwise
  std::vector<TablePolicy> policies = {};  ///< the first that matches a table counts
  /// Deltas that checkpoints may have after whole tables.
  int64_t max_deltas = 0;
  /// How servers take updates.
  ps::UpdateOptions updates = {};

  /// The settings of the config for a table; null: there are none.
  const TablePolicy* policy_of(const std::string& path) const;
  /// The empty table of a declaration. kConfig where the config does not fit it.
  std::unique_ptr<program::RowTable> open(program::TableSpec declared, uint64_t seed) const;

 private:
  std::shared_ptr<const optim::Optimizer> rule_of(const TablePolicy* policy) const;
};

}  // namespace paddle::train
