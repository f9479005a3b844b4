#include "ps_tables.h"

#include <utility>

#include "base/error.h"
#include "base/text.h"

namespace paddle::cli {

using train::StoredTable;

std::vector<StoredTable> stored_tables(const std::string& model, const std::string& table) {
  const std::string folder = train::table_source(model);
  std::vector<StoredTable> all = train::read_stored_tables(folder);
  if (all.empty()) fail(ErrorCode::kModel, folder, ": has no tables (sparse_embedding)");
  if (table.empty()) return all;
  std::vector<std::string> names;
  for (StoredTable& each : all) {
    if (each.format.name == table) {
      std::vector<StoredTable> one;
      one.push_back(std::move(each));
      return one;
    }
    names.push_back(each.format.name);
  }
  fail(ErrorCode::kUsage, "--table: ", folder, " has no table '", table, "'",
       did_you_mean(table, names), "; it has ", join(names, ", "));
}

StoredTable one_stored_table(const std::string& model, const std::string& table) {
  std::vector<StoredTable> all = stored_tables(model, table);
  if (all.size() == 1) return std::move(all[0]);
  std::vector<std::string> names;
  for (const StoredTable& each : all) names.push_back(each.format.name);
  fail(ErrorCode::kUsage, "--table is missing; the tables are ", join(names, ", "));
}

}  // namespace paddle::cli
