#include "program/served_tables.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <filesystem>

#include "base/error.h"
#include "base/files.h"
#include "base/parallel.h"
#include "tables/segments.h"

namespace paddle::program {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kKeysEnd = ".keys";
constexpr int64_t kLookupGrain = 512;

/// Keys and rows that have the form of a table; null: they have not.
ServedTables::Table table_of(const std::string& keys_name, const Array& keys, const Array* weight) {
  if (!weight || keys.shape.size() != 1 || weight->shape.size() != 2 ||
      weight->shape[0] != keys.shape[0] ||
      (keys.dtype != DType::kI64 && keys.dtype != DType::kU64) || !is_float(weight->dtype))
    return nullptr;
  return std::make_shared<tables::MappedTable>(
      keys_name.substr(0, keys_name.size() - kKeysEnd.size()), keys, *weight);
}

/// The name of the rows that belong to keys of this name; "": they are not those of a table.
std::string weight_of_keys(const std::string& name) {
  if (!name.ends_with(kKeysEnd)) return "";
  return table_weight(name.substr(0, name.size() - kKeysEnd.size()));
}

}  // namespace

void ServedTables::add(Table table) {
  std::string name = table->format().name;
  tables_[std::move(name)] = std::move(table);
}

const tables::MappedTable* ServedTables::find(const std::string& path) const {
  const auto found = tables_.find(path);
  return found == tables_.end() ? nullptr : found->second.get();
}

void ServedTables::open(const TableSpec& spec) {
  const tables::TableFormat& format = tables_.at(spec.path)->format();
  if (format.key != spec.key)
    fail(ErrorCode::kConfig, "sparse_embedding: the table '", spec.path, "' has ", text(format.key),
         " keys, x is ", text(spec.key));
  if (format.width != spec.width)
    fail(ErrorCode::kModel, "sparse_embedding: the rows of the table '", spec.path, "' have ",
         format.width, " numbers, the model needs ", spec.width);
}

TableRows ServedTables::read(const std::string& path, const Array& keys, const Array&) {
  TableRows out;
  const tables::MappedTable& table = *tables_.at(path);
  const DType dtype = table.format().dtype == DType::kF64 ? DType::kF64 : DType::kF32;
  look_up(table, keys, dtype, out.rows);
  return out;
}

FolderTables tables_of_folder(const formats::SafetensorsReader& weights) {
  FolderTables out;
  for (const formats::SafetensorsEntry& keys : weights.entries()) {
    const std::string name = weight_of_keys(keys.name);
    const auto* const rows = name.empty() ? nullptr : weights.find(name);
    if (!rows) continue;
    const Array weight = weights.read(*rows);
    if (auto table = table_of(keys.name, weights.read(keys), &weight))
      out.inside.add(std::move(table));
  }
  const fs::path folder = fs::path(weights.path()).parent_path() / tables::kTablesFolder;
  if (!is_directory(folder.string())) return out;
  for (const std::string& name : list_directory(folder.string(), ErrorCode::kModel))
    out.apart.add(tables::MappedTable::open((folder / name).string()));
  return out;
}

ServedTables large_tables(const ParameterStore& store, uint64_t limit) {
  ServedTables out;
  for (const auto& [name, keys] : store.parameters) {
    const auto weight = store.parameters.find(weight_of_keys(name));
    if (weight == store.parameters.end()) continue;
    auto table = table_of(name, keys.value, &weight->second.value);
    if (table && table->bytes() > limit) out.add(std::move(table));
  }
  return out;
}

std::optional<std::pair<std::string, std::string>> parse_rows_port(std::string_view name) {
  constexpr std::string_view kBegin = "rows:";
  const size_t colon = name.rfind(':');
  if (!name.starts_with(kBegin) || colon < kBegin.size()) return std::nullopt;
  return std::pair(std::string(name.substr(kBegin.size(), colon - kBegin.size())),
                   std::string(name.substr(colon + 1)));
}

std::vector<std::string> row_tables(const ir::Function& function) {
  std::vector<std::string> out;
  for (const ir::Port& port : function.inputs)
    if (auto rows = parse_rows_port(port.name); rows && port.kind == ir::PortKind::kValue)
      out.push_back(std::move(rows->first));
  std::sort(out.begin(), out.end());
  out.erase(std::unique(out.begin(), out.end()), out.end());
  return out;
}

void look_up(const tables::MappedTable& table, const Array& keys, DType dtype, Array& rows) {
  const int64_t width = table.format().width;
  const auto fits = [&] {
    return rows.storage && rows.dtype == dtype && rows.shape.size() == keys.shape.size() + 1 &&
           rows.shape.back() == width &&
           std::equal(keys.shape.begin(), keys.shape.end(), rows.shape.begin());
  };
  if (!fits()) {
    Dims shape = keys.shape;
    shape.push_back(width);
    rows = Array::empty(dtype, shape);
  }
  const auto row_bytes = static_cast<size_t>(storage_bytes(dtype, width));
  auto* const to = static_cast<std::byte*>(rows.raw());
  const void* const from = keys.raw();
  parallel_for(keys.size(), kLookupGrain, [&](int64_t begin, int64_t end) {
    std::array<uint64_t, kLookupGrain> some;
    for (int64_t at = begin; at < end; at += kLookupGrain) {
      const auto count = static_cast<size_t>(std::min(kLookupGrain, end - at));
      if (keys.dtype == DType::kI32)
        for (size_t i = 0; i < count; ++i)
          some[i] = static_cast<uint64_t>(
              int64_t{static_cast<const int32_t*>(from)[static_cast<size_t>(at) + i]});
      else
        std::memcpy(some.data(), static_cast<const uint64_t*>(from) + at, count * sizeof some[0]);
      table.read(std::span(some).first(count), dtype, to + static_cast<size_t>(at) * row_bytes);
    }
  });
}

}  // namespace paddle::program
