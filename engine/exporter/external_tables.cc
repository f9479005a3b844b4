#include "exporter/external_tables.h"

#include <filesystem>
#include <set>

#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/files.h"
#include "formats/safetensors.h"
#include "program/folders.h"

namespace paddle::exporter {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

/// Rows that are written at once.
constexpr size_t kChunk = 4096;

/// Writes a table by rising keys; gives its description.
Json write_table(const fs::path& folder, const tables::MappedTable& table) {
  const tables::TableFormat& format = table.format();
  const DType dtype = format.dtype == DType::kF64 ? DType::kF64 : DType::kF32;
  const std::string file = tables::folder_name(format.name) + ".safetensors";
  const int64_t count = table.count_rows();
  formats::SafetensorsParts parts(
      (folder / file).string(),
      {{.name = "keys", .dtype = format.key, .shape = {count}},
       {.name = "weight", .dtype = dtype, .shape = {count, format.width}}});
  parts.create();
  parts.open();
  const auto bytes = static_cast<size_t>(storage_bytes(dtype, format.width));
  std::vector<uint64_t> keys;
  std::vector<std::byte> rows;
  int64_t first = 0;
  const auto write = [&] {
    parts.write("keys", first, std::as_bytes(std::span(keys)));
    parts.write("weight", first * format.width, rows);
    first += static_cast<int64_t>(keys.size());
    keys.clear();
    rows.clear();
  };
  table.for_each_sorted([&](uint64_t key, const tables::MappedTable::Row& row) {
    keys.push_back(key);
    rows.resize(keys.size() * bytes);
    table.put_row(row, dtype, rows.data() + rows.size() - bytes);
    if (keys.size() == kChunk) write();
  });
  if (!keys.empty()) write();
  parts.sync();
  return {{"file", file},          {"key", text(format.key)}, {"dtype", text(dtype)},
          {"width", format.width}, {"rows", count},           {"absent", "zeros"}};
}

}  // namespace

std::string tables_folder(const std::string& output) {
  return output.substr(0, output.rfind('.')) + ".tables";
}

void write_external_tables(const std::string& folder,
                           const std::vector<const ir::Function*>& functions,
                           const program::ServedTables& tables) {
  Json inputs = Json::array();
  std::set<std::string> names, written;
  for (const ir::Function* const function : functions)
    for (const ir::Port& port : function->inputs) {
      const auto rows = program::parse_rows_port(port.name);
      if (!rows || !written.insert(port.name).second) continue;
      inputs.push_back({{"input", port.name}, {"table", rows->first}, {"keys", rows->second}});
      names.insert(rows->first);
    }
  const fs::path place = folder, staged = place.string() + ".unfinished";
  program::remove_folder(staged);
  ensure_directory(staged.string());
  Json described = Json::object();
  for (const std::string& name : names) {
    const tables::MappedTable* const table = tables.find(name);
    if (!table) fail(ErrorCode::kModel, "the table '", name, "' is missing");
    described[name] = write_table(staged, *table);
  }
  const Json all = {{"version", 1}, {"inputs", inputs}, {"tables", described}};
  write_file_atomically((staged / "tables.json").string(), all.dump(2) + "\n");
  program::put_in_place(staged, place);
}

}  // namespace paddle::exporter
