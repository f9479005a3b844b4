#pragma once
// The tables that a command of paddle-ps is about.

#include <string>
#include <vector>

#include "train/tables/stored_tables.h"

namespace paddle::cli {

/// All tables of a run, checkpoint or saved model, or the one of this name. kModel if there is
/// none; kUsage for a name that no table has.
std::vector<train::StoredTable> stored_tables(const std::string& model, const std::string& table);
/// The only table, or the one of this name.
train::StoredTable one_stored_table(const std::string& model, const std::string& table);

}  // namespace paddle::cli
