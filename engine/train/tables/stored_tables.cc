#include "train/tables/stored_tables.h"

#include <algorithm>
#include <filesystem>

#include "base/error.h"
#include "base/files.h"
#include "base/key_text.h"
#include "formats/safetensors.h"
#include "program/model_store.h"
#include "program/row_table.h"
#include "train/step/step.h"

namespace paddle::train {
namespace {

namespace fs = std::filesystem;
using tables::kWaiting;
using tables::kWaitingKeys;
using tables::TableContent;

constexpr const char* kWeights = "model.safetensors";
constexpr const char* kStates = "optimizer.safetensors";

StoredTable::Found find_in(const std::vector<TableContent>& parts, uint64_t key) {
  for (const TableContent& part : parts) {
    const auto* const keys = static_cast<const uint64_t*>(part.keys.raw());
    const auto* const at = std::find(keys, keys + part.keys.size(), key);
    if (at != keys + part.keys.size()) return {&part, at - keys};
  }
  return {};
}

int64_t count_of(const std::vector<TableContent>& parts) {
  int64_t count = 0;
  for (const TableContent& part : parts) count += part.keys.size();
  return count;
}

/// The table whose keys are a tensor of the weights; no name if they are not those of one.
StoredTable inline_table(const formats::SafetensorsReader& weights,
                         const formats::SafetensorsReader* states,
                         const formats::SafetensorsEntry& keys) {
  constexpr std::string_view kSuffix = ".keys";
  StoredTable out;
  if (!keys.name.ends_with(kSuffix) || keys.shape.size() != 1 ||
      (keys.dtype != DType::kI64 && keys.dtype != DType::kU64))
    return out;
  const std::string path = keys.name.substr(0, keys.name.size() - kSuffix.size()),
                    weight = program::table_weight(path);
  const auto* const rows = weights.find(weight);
  if (!rows || rows->shape.size() != 2 || rows->shape[0] != keys.shape[0] || rows->shape[1] < 1 ||
      (rows->dtype != DType::kF32 && rows->dtype != DType::kF64))
    return out;
  out.format = {
      .name = path, .key = keys.dtype, .dtype = rows->dtype, .width = rows->shape[1], .states = {}};
  out.place = weights.path();
  TableContent& content = out.parts.emplace_back();
  content.keys = weights.read(keys);
  content.weight = weights.read(*rows);
  program::check_content(spec_of(out.format), content, out.place);
  if (!states) return out;
  const std::string prefix = Step::optimizer_state(weight, "");
  TableContent waiting;
  for (const auto& entry : states->entries()) {
    if (!entry.name.starts_with(prefix)) continue;
    const std::string name = entry.name.substr(prefix.size());
    if (name == kWaitingKeys) {
      waiting.keys = states->read(entry);
    } else if (name == kWaiting) {
      waiting.weight = states->read(entry);
    } else if (entry.shape.size() == 1) {
      out.format.statistics.push_back(name);
      content.statistics.emplace_back(name, states->read(entry));
    } else {
      out.format.states.push_back(name);
      content.states.emplace_back(name, states->read(entry));
    }
  }
  program::check_content(spec_of(out.format), content, states->path());
  if (!waiting.keys.storage || !waiting.weight.storage) return out;
  program::check_content(program::waiting_spec(spec_of(out.format)), waiting, states->path());
  out.waiting.push_back(std::move(waiting));
  return out;
}

StoredTable table_in(const fs::path& folder) {
  StoredTable out;
  out.format = tables::read_format(folder.string());
  out.place = folder.string();
  out.parts = tables::read_segments(out.place, out.format, {0, tables::kShards}, true);
  const std::string waiting = (folder / kWaiting).string();
  if (file_exists((fs::path(waiting) / tables::kManifest).string()))
    out.waiting = tables::read_segments(waiting, program::waiting_format(spec_of(out.format)),
                                        {0, tables::kShards}, true);
  return out;
}

}  // namespace

program::TableSpec spec_of(const tables::TableFormat& format) {
  program::TableSpec out;
  out.path = format.name;
  out.width = format.width;
  out.dtype = format.dtype;
  out.key = format.key;
  return out;
}

int64_t StoredTable::count() const { return count_of(parts); }
int64_t StoredTable::waiting_count() const { return count_of(waiting); }

uint64_t StoredTable::bytes() const {
  const auto of_row = sizeof(uint64_t) +
                      static_cast<uint64_t>(storage_bytes(format.dtype, format.width)) *
                          (1 + format.states.size()) +
                      sizeof(float) * format.statistics.size();
  return static_cast<uint64_t>(count()) * of_row;
}

std::string StoredTable::key_text(uint64_t key) const {
  return is_signed() ? std::to_string(static_cast<int64_t>(key)) : std::to_string(key);
}

StoredTable::Found StoredTable::find(uint64_t key) const { return find_in(parts, key); }
StoredTable::Found StoredTable::find_waiting(uint64_t key) const { return find_in(waiting, key); }

std::string table_source(const std::string& model) {
  if (program::is_store(model))
    return (fs::path(model) / program::current_version(model)).lexically_normal().string();
  const fs::path root = model;
  for (const char* inside : {"checkpoints/latest", ".", "latest", "model"})
    if (file_exists((root / inside / kWeights).string()))
      return (root / inside).lexically_normal().string();
  fail(ErrorCode::kModel, model,
       ": has no checkpoint and no saved model; expected the folder of a run, a checkpoint or a "
       "saved model");
}

std::vector<StoredTable> read_stored_tables(const std::string& folder) {
  const fs::path root = folder;
  const formats::SafetensorsReader weights((root / kWeights).string());
  std::optional<formats::SafetensorsReader> states;
  if (file_exists((root / kStates).string())) states.emplace((root / kStates).string());
  std::vector<StoredTable> out;
  for (const auto& entry : weights.entries()) {
    StoredTable table = inline_table(weights, states ? &*states : nullptr, entry);
    if (!table.format.name.empty()) out.push_back(std::move(table));
  }
  std::error_code error;
  for (const auto& each : fs::directory_iterator(root / tables::kTablesFolder, error))
    if (file_exists((each.path() / tables::kManifest).string()))
      out.push_back(table_in(each.path()));
  std::sort(out.begin(), out.end(), [](const StoredTable& a, const StoredTable& b) {
    return a.format.name < b.format.name;
  });
  return out;
}

uint64_t parse_key(const StoredTable& table, const std::string& text) {
  uint64_t key = 0;
  if (read_key(text, table.is_signed(), key) != std::errc())
    fail(ErrorCode::kUsage, "--key: '", text, "' is not an integer of type ",
         paddle::text(table.format.key));
  return key;
}

}  // namespace paddle::train
