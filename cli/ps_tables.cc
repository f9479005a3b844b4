#include "ps_tables.h"

#include <utility>

#include "base/error.h"
#include "base/text.h"
#include "tables/row_policy.h"

namespace paddle::cli {

using nlohmann::ordered_json;
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

ordered_json numbers_json(const Array& array, int64_t row) {
  const int64_t width = array.shape.size() == 1 ? 1 : array.shape[1];
  ordered_json out = ordered_json::array();
  for (int64_t i = 0; i < width; ++i) out.push_back(array.number(row * width + i));
  return array.shape.size() == 1 ? out[0] : out;
}

ordered_json found_json(const StoredTable& table, uint64_t key, bool states) {
  ordered_json out;
  if (const auto [content, row] = table.find(key); content) {
    out["found"] = "row";
    out["weight"] = numbers_json(content->weight, row);
    if (states)
      for (const auto& [name, values] : content->states) out[name] = numbers_json(values, row);
    for (const auto& [name, values] : content->statistics) out[name] = numbers_json(values, row);
    return out;
  }
  if (const auto [content, row] = table.find_waiting(key); content) {
    out["found"] = "waiting";
    const char* const names[] = {"count", "show", "click", "day"};
    for (int64_t i = 0; i < tables::kWaitingWidth; ++i)
      out[names[i]] = content->weight.number(row * tables::kWaitingWidth + i);
    return out;
  }
  out["found"] = "none";
  return out;
}

}  // namespace paddle::cli
