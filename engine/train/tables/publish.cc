#include "train/tables/publish.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <vector>

#include "base/error.h"
#include "base/files.h"
#include "program/folders.h"
#include "program/model_store.h"
#include "program/saved_model.h"
#include "program/traced_model.h"
#include "tables/mapped_table.h"
#include "train/tables/stored_edits.h"
#include "train/tables/stored_tables.h"
#include "train/tables/table_policy.h"

namespace paddle::train {
namespace {

namespace fs = std::filesystem;
using tables::MappedTable;
using tables::RecordTable;
using tables::TableContent;

constexpr const char* kStaged = ".publishing";
/// Deltas that follow a base at most: a lookup searches each of them.
constexpr size_t kMaxDeltas = 64;
/// Rows that are compared at once.
constexpr int64_t kChunk = 1024;

/// The rows of a table as they are published.
class Source {
 public:
  Source(const StoredTable& table, const PublishRules& rules, tables::RowPolicy policy, int64_t day)
      : table_(table), rules_(rules), policy_(std::move(policy)), day_(day) {
    format_ = {.name = table.format.name,
               .key = table.format.key,
               .dtype = table.format.dtype == DType::kF64 && rules.dtype == DType::kF32
                            ? DType::kF64
                            : rules.dtype,
               .width = table.format.width,
               .states = {}};
    if (format_.dtype == DType::kI8) format_.statistics = {tables::kRowScale};
    const auto has = [&](const std::string& name) {
      const auto& all = table.format.statistics;
      return std::find(all.begin(), all.end(), name) != all.end();
    };
    has_statistics_ = has("show") && has("click") && has("day");
  }

  const tables::TableFormat& format() const { return format_; }
  const StoredTable& table() const { return table_; }
  RecordTable records() const {
    return {format_.dtype, format_.width, 0, format_.statistics.size() * sizeof(float)};
  }

  bool is_in_base(const TableContent& part, int64_t row) const {
    return !has_statistics_ || !rules_.base_score ||
           score(statistics(part, row)) >= *rules_.base_score;
  }
  bool is_in_delta(const TableContent& part, int64_t row) const {
    if (!has_statistics_) return true;
    const tables::RowStatistics of = statistics(part, row);
    if (rules_.delta_days && static_cast<double>(day_) - static_cast<double>(of.day) >
                                 static_cast<double>(*rules_.delta_days))
      return false;
    return !rules_.delta_score || score(of) >= *rules_.delta_score;
  }

  /// A row as `records` has it: the values, and the scale of int8.
  void encode(const TableContent& part, int64_t row, std::byte* to) const {
    const int64_t width = format_.width;
    const auto at = [&](int64_t i) { return part.weight.number(row * width + i); };
    if (format_.dtype == table_.format.dtype) {
      const auto bytes = static_cast<size_t>(storage_bytes(format_.dtype, width));
      std::memcpy(
          to, static_cast<const std::byte*>(part.weight.raw()) + static_cast<size_t>(row) * bytes,
          bytes);
      return;
    }
    double largest = 0;
    for (int64_t i = 0; i < width; ++i) largest = std::max(largest, std::abs(at(i)));
    constexpr double kMost = 127;
    const auto scale = static_cast<float>(largest / kMost);
    for (int64_t i = 0; i < width; ++i) {
      const auto value = static_cast<float>(at(i));
      const auto put = [&](const auto& element) {
        std::memcpy(to + static_cast<size_t>(i) * sizeof element, &element, sizeof element);
      };
      if (format_.dtype == DType::kF16) put(float16(value));
      if (format_.dtype == DType::kBF16) put(bfloat16(value));
      if (format_.dtype == DType::kF32) put(value);
      if (format_.dtype == DType::kI8)
        put(static_cast<int8_t>(
            scale > 0
                ? std::clamp(std::nearbyint(at(i) / static_cast<double>(scale)), -kMost, kMost)
                : 0));
    }
    if (format_.dtype == DType::kI8) std::memcpy(to + width, &scale, sizeof scale);
  }

 private:
  double score(const tables::RowStatistics& of) const {
    const tables::RowStatistics now = policy_.on_day(of, day_);
    return policy_.score(now.show, now.click);
  }
  tables::RowStatistics statistics(const TableContent& part, int64_t row) const {
    tables::RowStatistics out;
    for (const auto& [name, values] : part.statistics) {
      const float value = values.data<float>()[row];
      if (name == "show") out.show = value;
      if (name == "click") out.click = value;
      if (name == "day") out.day = value;
    }
    return out;
  }

  const StoredTable& table_;
  const PublishRules& rules_;
  tables::RowPolicy policy_;
  int64_t day_;
  tables::TableFormat format_;
  bool has_statistics_ = false;
};

const uint64_t* keys_of(const TableContent& part) {
  return static_cast<const uint64_t*>(part.keys.raw());
}

void add_written(const Source& source, int64_t rows, PublishedVersion& out) {
  const tables::TableFormat& format = source.format();
  out.rows += rows;
  out.bytes +=
      static_cast<uint64_t>(rows) *
      (sizeof(uint64_t) + static_cast<uint64_t>(storage_bytes(format.dtype, format.width)) +
       format.statistics.size() * sizeof(float));
}

/// Writes the filtered rows of a table; needs memory for those of an eighth of the shards.
void write_base(const std::string& folder, const Source& source, int64_t step,
                PublishedVersion& out) {
  const std::string part_of_manifest = tables::write_segments(
      folder, source.format(),
      [&](std::pair<int, int> range, const auto& write) {
        RecordTable records = source.records();
        for (const TableContent& part : source.table().parts)
          for (int64_t row = 0; row < part.keys.size(); ++row) {
            const uint64_t key = keys_of(part)[row];
            const int shard = tables::shard_of(key);
            if (shard >= range.first && shard < range.second && source.is_in_base(part, row))
              source.encode(part, row, records.insert(key));
          }
        write(records);
        add_written(source, records.count(), out);
      },
      {0, tables::kShards}, step);
  tables::write_manifest(folder, source.format(), step, {&part_of_manifest, 1});
}

/// Keys of the version before that the table lacks.
std::vector<uint64_t> missing_keys(const Source& source, const MappedTable& before) {
  std::vector<uint64_t> present, out;
  for (const TableContent& part : source.table().parts)
    present.insert(present.end(), keys_of(part), keys_of(part) + part.keys.size());
  std::sort(present.begin(), present.end());
  before.for_each([&](uint64_t key, const MappedTable::Row&) {
    if (!std::binary_search(present.begin(), present.end(), key)) out.push_back(key);
  });
  return out;
}

void write_delta(const std::string& folder, const std::string& folder_before, const Source& source,
                 int64_t step, PublishedVersion& out) {
  const auto before = MappedTable::open(folder_before);
  RecordTable changed = source.records();
  const auto row_bytes = changed.row_bytes();
  std::vector<std::byte> encoded(row_bytes + sizeof(float));
  std::vector<MappedTable::Row> found(kChunk);
  int64_t known = 0, added = 0;
  for (const TableContent& part : source.table().parts)
    for (int64_t first = 0; first < part.keys.size(); first += kChunk) {
      const int64_t last = std::min(part.keys.size(), first + kChunk);
      before->find({keys_of(part) + first, static_cast<size_t>(last - first)}, found.data());
      for (int64_t row = first; row < last; ++row) {
        const MappedTable::Row& old = found[static_cast<size_t>(row - first)];
        known += old.values ? 1 : 0;
        source.encode(part, row, encoded.data());
        float scale = 1;
        if (source.format().dtype == DType::kI8)
          std::memcpy(&scale, encoded.data() + row_bytes, sizeof scale);
        if (old.values && old.scale == scale &&
            std::memcmp(old.values, encoded.data(), row_bytes) == 0)
          continue;
        if (!source.is_in_delta(part, row)) continue;
        added += old.values ? 0 : 1;
        std::memcpy(changed.insert(keys_of(part)[row]), encoded.data(),
                    row_bytes + source.format().statistics.size() * sizeof(float));
      }
    }
  const int64_t count = before->count_rows();
  std::vector<uint64_t> deleted;
  if (known < count) deleted = missing_keys(source, *before);
  const std::string part =
      tables::write_delta(folder, source.format(), changed, deleted, {0, tables::kShards}, step);
  const auto removed = static_cast<int64_t>(deleted.size());
  tables::write_delta_manifest(folder, folder_before, source.format(), step,
                               count + added - removed, {&part, 1});
  add_written(source, changed.count(), out);
  out.removed += removed;
}

/// Whether the folder has a table to which a delta can be written.
bool takes_delta(const std::string& folder, const tables::TableFormat& wanted) {
  if (!file_exists((fs::path(folder) / tables::kManifest).string())) return false;
  const tables::TableFormat format = tables::read_format(folder);
  return format.name == wanted.name && format.key == wanted.key && format.dtype == wanted.dtype &&
         format.width == wanted.width && tables::read_chain(folder).delta_steps.size() < kMaxDeltas;
}

/// Removes old versions, and what a killed process left.
void prune(const fs::path& store, int64_t keep) {
  const std::string current = program::current_version(store.string());
  std::vector<std::string> names = program::list_versions(store.string());  // oldest first
  std::erase(names, current);
  for (size_t i = 0; i + static_cast<size_t>(keep) - 1 < names.size(); ++i)
    program::remove_folder(store / names[i]);
}

/// Writes the function and the dense weights; the rows of all tables are inputs.
void write_dense(const std::string& source, const std::string& folder) {
  program::LoadOptions options;
  options.inline_tables = 0;
  const program::TracedModel model = program::trace_model(source, options);
  program::write_folder(folder, source, model.name, model.function, model.weight);
}

fs::path place_of(const StoredTable& table) {
  return fs::path(tables::kTablesFolder) / tables::folder_name(table.format.name);
}

}  // namespace

ServedBytes write_served_model(const std::string& source, const std::string& folder, DType dtype) {
  PublishRules rules;
  rules.dtype = dtype;
  ServedBytes out;
  PublishedVersion written;
  write_dense(source, folder);
  for (const StoredTable& table : read_stored_tables(source)) {
    write_base((fs::path(folder) / place_of(table)).string(), Source(table, rules, {}, 0),
               step_of_checkpoint(source), written);
    const auto row = static_cast<uint64_t>(storage_bytes(table.format.dtype, table.format.width));
    out.before += static_cast<uint64_t>(table.count()) * (sizeof(uint64_t) + row);
  }
  out.after = written.bytes;
  return out;
}

std::optional<PublishedVersion> publish(const std::string& checkpoint, const std::string& store,
                                        bool whole, const PublishRules& rules,
                                        const std::vector<TablePolicy>& policies) {
  const int64_t step = step_of_checkpoint(checkpoint), day = table_day_of(checkpoint);
  PublishedVersion out{.name = std::to_string(step)};
  const fs::path root(store), place = root / out.name, staged = root / kStaged;
  if (file_exists((place / "module.txt").string())) return std::nullopt;
  ensure_directory(store);
  std::error_code ignored;
  fs::remove_all(staged, ignored);
  const bool has_current = program::is_store(store);
  const fs::path before =
      has_current && !whole ? root / program::current_version(store) : fs::path();
  out.is_base = true;

  write_dense(checkpoint, staged.string());
  for (const StoredTable& table : read_stored_tables(checkpoint)) {
    const TablePolicy* const policy = find_policy(policies, table.format.name);
    const Source source(table, rules, policy ? policy->policy : tables::RowPolicy(), day);
    const fs::path below = place_of(table);
    const std::string folder = (staged / below).string();
    if (!before.empty() && takes_delta((before / below).string(), source.format())) {
      write_delta(folder, (before / below).string(), source, step, out);
      out.is_base = false;
    } else {
      write_base(folder, source, step, out);
    }
  }
  program::sync_folder(staged.string());
  program::put_in_place(staged, place);
  program::set_current_version(store, out.name);
  prune(root, rules.keep);
  return out;
}

}  // namespace paddle::train
