#pragma once
// Copies of checkpoints with other rows in their tables: without removed ones, or with all deltas
// in one base.

#include <functional>
#include <string>
#include <vector>

#include "tables/row_policy.h"
#include "train/tables/stored_tables.h"

namespace paddle::train {

/// The days of tables that are over in a checkpoint. kModel if the folder is none.
int64_t table_day_of(const std::string& checkpoint);

/// The step of a checkpoint; 0 for folders that are none.
int64_t step_of_checkpoint(const std::string& folder);

/// Keeps the rows, and the waiting keys, for which a function of their statistics is true; gives
/// how many rows were removed. The columns must be there: kUsage if a policy needs those that the
/// table lacks.
int64_t shrink_rows(StoredTable& table, const tables::RowPolicy& policy, int64_t ended);

/// Writes a copy of a checkpoint to a folder that does not exist yet, with these tables in the
/// place of those of their names. Tables in files of their own have one base.
void write_with_tables(const std::string& checkpoint, const std::string& out,
                       const std::vector<StoredTable>& tables);

/// A folder with one table only: model.safetensors, which `init: {weights: …}` takes, and states
/// and statistics in optimizer.safetensors.
void write_table(const std::string& out, const StoredTable& table);

}  // namespace paddle::train
