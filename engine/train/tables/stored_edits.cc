#include "train/tables/stored_edits.h"

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <map>
#include <numeric>

#include <nlohmann/json.hpp>

#include "base/files.h"
#include "formats/safetensors.h"
#include "program/row_table.h"
#include "tables/merged_rows.h"
#include "train/step/step.h"

namespace paddle::train {
namespace {

namespace fs = std::filesystem;
using tables::TableContent;

constexpr const char* kState = "state.json";
constexpr const char* kWeightsFile = "model.safetensors";
constexpr const char* kStatesFile = "optimizer.safetensors";
constexpr uint64_t kMaxState = uint64_t{1} << 28;

nlohmann::json state_of(const std::string& checkpoint) {
  const std::string path = (fs::path(checkpoint) / kState).string();
  if (!file_exists(path))
    fail(ErrorCode::kModel, checkpoint, ": is not a checkpoint (it has no ", kState, ")");
  nlohmann::json state =
      nlohmann::json::parse(read_file(path, kMaxState, ErrorCode::kModel), nullptr, false);
  if (!state.is_object()) fail(ErrorCode::kModel, path, ": is damaged");
  return state;
}

/// Some rows of an array, in order.
Array selected(const Array& array, const std::vector<int64_t>& rows) {
  const Array packed = array.contiguous();
  Dims shape = packed.shape;
  int64_t elements = 1;
  for (size_t d = 1; d < shape.size(); ++d) elements *= shape[d];
  shape[0] = static_cast<int64_t>(rows.size());
  const auto bytes = static_cast<size_t>(storage_bytes(packed.dtype, elements));
  Array out = Array::empty(packed.dtype, shape);
  auto* to = static_cast<std::byte*>(out.raw());
  for (const int64_t row : rows) {
    std::memcpy(to, static_cast<const std::byte*>(packed.raw()) + static_cast<size_t>(row) * bytes,
                bytes);
    to += bytes;
  }
  return out;
}

TableContent selected(const TableContent& content, const std::vector<int64_t>& rows) {
  TableContent out{selected(content.keys, rows), selected(content.weight, rows)};
  for (const auto& [name, values] : content.states)
    out.states.emplace_back(name, selected(values, rows));
  for (const auto& [name, values] : content.statistics)
    out.statistics.emplace_back(name, selected(values, rows));
  return out;
}

const Array& statistic(const StoredTable& table, const TableContent& content,
                       const std::string& name) {
  for (const auto& [each, values] : content.statistics)
    if (each == name) return values;
  fail(ErrorCode::kUsage, "the table '", table.format.name, "' has no statistics (", name,
       "), by which rows are removed");
}

void write_own(const std::string& folder, const tables::TableFormat& format,
               const std::vector<TableContent>& parts, int64_t step) {
  const std::string written = tables::write_segments(
      folder, format,
      [&](std::pair<int, int> range, const auto& write) {
        write(tables::records_of(format, parts, range));
      },
      {0, tables::kShards}, step);
  tables::write_manifest(folder, format, step, std::span(&written, 1));
}

/// The tensors of an inline table in a file, by name.
using Tensors = std::map<std::string, Array>;

void add_inline(const StoredTable& table, Tensors& weights, Tensors& states) {
  const std::string weight = program::table_weight(table.format.name);
  const TableContent& content = table.parts.at(0);
  weights[program::table_keys(table.format.name)] = content.keys;
  weights[weight] = content.weight;
  for (const auto& columns : {content.states, content.statistics})
    for (const auto& [name, values] : columns) states[Step::optimizer_state(weight, name)] = values;
  if (table.waiting.empty()) return;
  states[Step::optimizer_state(weight, tables::kWaitingKeys)] = table.waiting[0].keys;
  states[Step::optimizer_state(weight, tables::kWaiting)] = table.waiting[0].weight;
}

/// A copy of a file with other tensors in the place of those of these names.
void replace_tensors(const fs::path& from, const fs::path& to, const Tensors& tensors) {
  const formats::SafetensorsReader reader(from.string());
  std::vector<std::pair<std::string, Array>> all;
  for (const formats::SafetensorsEntry& entry : reader.entries()) {
    const auto other = tensors.find(entry.name);
    all.emplace_back(entry.name, other == tensors.end() ? reader.read(entry) : other->second);
  }
  formats::write_safetensors(to.string(), all, reader.metadata());
}

void check_new(const std::string& folder) {
  if (file_exists(folder) || is_directory(folder))
    fail(ErrorCode::kUsage, folder, ": exists already; expected the name of a new folder");
}

bool is_own(const StoredTable& table) { return is_directory(table.place); }

}  // namespace

int64_t table_day_of(const std::string& checkpoint) {
  const nlohmann::json state = state_of(checkpoint);
  return state.contains("table_day") && state["table_day"].is_number_integer()
             ? state["table_day"].get<int64_t>()
             : 0;
}

int64_t step_of_checkpoint(const std::string& folder) {
  if (!file_exists((fs::path(folder) / kState).string())) return 0;
  const nlohmann::json state = state_of(folder);
  return state.contains("step") && state["step"].is_number_integer() ? state["step"].get<int64_t>()
                                                                     : 0;
}

int64_t shrink_rows(StoredTable& table, const tables::RowPolicy& policy, int64_t ended) {
  int64_t removed = 0;
  struct Kept {
    double score;
    size_t part;
    int64_t row;
  };
  std::vector<std::vector<Kept>> by_shard(tables::kShards);
  for (size_t p = 0; p < table.parts.size(); ++p) {
    const TableContent& part = table.parts[p];
    const auto* const show = statistic(table, part, "show").data<float>();
    const auto* const click = statistic(table, part, "click").data<float>();
    const auto* const day = statistic(table, part, "day").data<float>();
    for (int64_t row = 0; row < part.keys.size(); ++row) {
      const tables::RowStatistics of{show[row], click[row], day[row]};
      if (policy.is_removed(of, ended)) {
        ++removed;
        continue;
      }
      const tables::RowStatistics then = policy.on_day(of, ended + 1);
      const uint64_t key = static_cast<const uint64_t*>(part.keys.raw())[row];
      by_shard[static_cast<size_t>(tables::shard_of(key))].push_back(
          {policy.score(then.show, then.click), p, row});
    }
  }
  std::vector<std::vector<int64_t>> rows(table.parts.size());
  const auto of_shard =
      static_cast<size_t>((policy.max_rows + tables::kShards - 1) / tables::kShards);
  for (std::vector<Kept>& shard : by_shard) {
    if (policy.max_rows > 0 && shard.size() > of_shard) {
      // Of equal scores, lower keys stay: they come first.
      std::stable_sort(shard.begin(), shard.end(),
                       [](const Kept& a, const Kept& b) { return a.score > b.score; });
      removed += static_cast<int64_t>(shard.size() - of_shard);
      shard.resize(of_shard);
    }
    for (const Kept& each : shard) rows[each.part].push_back(each.row);
  }
  for (size_t p = 0; p < table.parts.size(); ++p) {
    std::sort(rows[p].begin(), rows[p].end());
    table.parts[p] = selected(table.parts[p], rows[p]);
  }
  for (TableContent& part : table.waiting) {
    std::vector<int64_t> kept;
    for (int64_t row = 0; row < part.keys.size(); ++row) {
      const auto day = static_cast<int64_t>(
          part.weight.number(row * tables::kWaitingWidth + tables::kWaitingWidth - 1));
      if (policy.unseen_days == 0 || ended - day < policy.unseen_days) kept.push_back(row);
    }
    part = selected(part, kept);
  }
  return removed;
}

void write_with_tables(const std::string& checkpoint, const std::string& out,
                       const std::vector<StoredTable>& tables) {
  nlohmann::json state = state_of(checkpoint);
  const int64_t step = step_of_checkpoint(checkpoint);
  check_new(out);
  const fs::path from(checkpoint), to(out);
  Tensors weights, states;
  for (const StoredTable& table : tables)
    if (!is_own(table)) add_inline(table, weights, states);
  ensure_directory(out);
  for (const auto& each : fs::recursive_directory_iterator(from)) {
    const fs::path name = fs::relative(each.path(), from);
    if (!each.is_regular_file() || *name.begin() == tables::kTablesFolder) continue;
    ensure_directory((to / name).parent_path().string());
    if (name == kWeightsFile)
      replace_tensors(each.path(), to / name, weights);
    else if (name == kStatesFile)
      replace_tensors(each.path(), to / name, states);
    else if (name != kState)
      fs::copy_file(each.path(), to / name);
  }
  for (const StoredTable& table : tables) {
    if (!is_own(table)) continue;
    const fs::path folder = to / tables::kTablesFolder / tables::folder_name(table.format.name);
    write_own(folder.string(), table.format, table.parts, step);
    if (table.waiting.empty()) continue;
    write_own((folder / tables::kWaiting).string(), program::waiting_format(spec_of(table.format)),
              table.waiting, step);
  }
  if (state.contains("files"))
    for (auto& [name, entry] : state["files"].items()) {
      if (name.find("..") != std::string::npos || name.starts_with("/"))
        fail(ErrorCode::kModel, (from / kState).string(), ": is damaged");
      const auto file = MappedFile::open((to / name).string(), ErrorCode::kModel);
      entry["bytes"] = file->size();
      entry["crc32"] = crc32(file->bytes());
    }
  write_file_atomically((to / kState).string(), state.dump() + "\n");
}

void write_table(const std::string& out, const StoredTable& table) {
  check_new(out);
  Tensors weights, states;
  add_inline(table, weights, states);
  ensure_directory(out);
  const auto write = [&](const char* name, const Tensors& tensors) {
    if (!tensors.empty())
      formats::write_safetensors((fs::path(out) / name).string(), {tensors.begin(), tensors.end()});
  };
  write(kWeightsFile, weights);
  write(kStatesFile, states);
}

}  // namespace paddle::train
