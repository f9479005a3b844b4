#pragma once
// The tables that a command of paddle-ps is about.

#include <cstdint>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "train/tables/stored_tables.h"

namespace paddle::cli {

/// All tables of a run, checkpoint or saved model, or the one of this name. kModel if there is
/// none; kUsage for a name that no table has.
std::vector<train::StoredTable> stored_tables(const std::string& model, const std::string& table);
/// The only table, or the one of this name.
train::StoredTable one_stored_table(const std::string& model, const std::string& table);

/// The numbers of a row of an array [rows] or [rows, width]: one, or a list.
nlohmann::ordered_json numbers_json(const Array& array, int64_t row);
/// `found` (row, waiting or none) and what the table has of the key; `states`: of the optimizer,
/// too.
nlohmann::ordered_json found_json(const train::StoredTable& table, uint64_t key, bool states);

}  // namespace paddle::cli
