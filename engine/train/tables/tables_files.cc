// Tables in files: among the parameters and states of a store, or in files of their own.

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <numeric>

#include "base/files.h"
#include "base/text.h"
#include "train/step/step.h"
#include "train/tables/tables.h"

namespace paddle::train {

namespace fs = std::filesystem;
using program::table_keys;
using program::table_weight;
using tables::kWaiting;
using tables::kWaitingKeys;

namespace {

/// An array with a row for each key, and the bytes of one.
struct Column {
  Array* array;
  size_t bytes;
};

/// Arrays of a content, the keys first.
std::vector<Column> columns_of(TableContent& content) {
  std::vector<Column> out;
  const auto add = [&](Array& array) {
    int64_t elements = 1;
    for (size_t d = 1; d < array.shape.size(); ++d) elements *= array.shape[d];
    out.push_back({&array, static_cast<size_t>(storage_bytes(array.dtype, elements))});
  };
  add(content.keys);
  add(content.weight);
  for (auto& [name, values] : content.states) add(values);
  for (auto& [name, values] : content.statistics) add(values);
  return out;
}

/// The contents of all ranks by rising keys, on rank 0; on the others only types and shapes.
TableContent joined(TableExchange& exchange, TableContent mine, bool is_signed) {
  const std::vector<Column> columns = columns_of(mine);
  const int64_t count = exchange.sum(mine.keys.shape[0]);
  std::vector<std::byte> message;
  size_t row_bytes = 0;
  for (const Column& column : columns) {
    append(message, std::span(static_cast<const std::byte*>(column.array->raw()),
                              static_cast<size_t>(mine.keys.shape[0]) * column.bytes));
    row_bytes += column.bytes;
  }
  const RankMessages all = exchange.gather(std::move(message));
  struct Found {
    uint64_t order, key;
    size_t rank, at;
  };
  std::vector<Found> found;
  std::vector<size_t> counts;
  for (size_t rank = 0; rank < all.size(); ++rank) {
    counts.push_back(all[rank].size() / row_bytes);
    for (size_t i = 0; i < counts[rank]; ++i) {
      uint64_t key = 0;
      std::memcpy(&key, all[rank].data() + i * sizeof key, sizeof key);
      found.push_back({tables::ordered(key, is_signed), key, rank, i});
    }
  }
  std::sort(found.begin(), found.end(),
            [](const Found& a, const Found& b) { return a.order < b.order; });
  ensure(!exchange.is_root() || static_cast<int64_t>(found.size()) == count,
         "tables: ranks differ");
  size_t before = 0;  // bytes of a row in the columns so far
  for (const Column& column : columns) {
    Dims shape = column.array->shape;
    shape[0] = count;
    if (!exchange.is_root()) {
      *column.array = Array::reserve(column.array->dtype, shape);
      continue;
    }
    Array whole = Array::empty(column.array->dtype, shape);
    auto* to = static_cast<std::byte*>(whole.raw());
    for (const Found& each : found) {
      std::memcpy(to, all[each.rank].data() + counts[each.rank] * before + each.at * column.bytes,
                  column.bytes);
      to += column.bytes;
    }
    before += column.bytes;
    *column.array = std::move(whole);
  }
  return mine;
}

}  // namespace

TableContent Tables::gathered(const RowTable& table, bool states) {
  if (exchange_.ranks() == 1) return table.content(states);
  return joined(exchange_, table.content(states), table.spec().key == DType::kI64);
}

TableContent Tables::gathered_waiting(const RowTable& table) {
  if (exchange_.ranks() == 1) return table.waiting();
  return joined(exchange_, table.waiting(), table.spec().key == DType::kI64);
}

bool Tables::is_large(const RowTable& table) const {
  return static_cast<uint64_t>(exchange_.sum(table.count())) * table.payload_bytes() > kMaxInline;
}

bool Tables::has_own_files() {
  finish_removal();
  bool any = false;
  for (auto& [path, entry] : tables_) any = is_large(*entry.table) || any;
  return any;
}

program::ParameterStore Tables::with_tables(const program::ParameterStore& store, Saved saved) {
  finish_removal();
  program::ParameterStore out = store;
  for (const auto& [path, entry] : tables_) {
    if (saved == Saved::kInline && is_large(*entry.table)) continue;
    TableContent content = gathered(*entry.table, saved != Saved::kWeights);
    const std::string weight = table_weight(path);
    out.parameters[table_keys(path)] = {std::move(content.keys), ""};
    out.parameters[weight] = {std::move(content.weight), entry.table->spec().init.text()};
    for (auto& [slot, values] : content.states)
      out.states[Step::optimizer_state(weight, slot)] = std::move(values);
    for (auto& [name, values] : content.statistics)
      out.states[Step::optimizer_state(weight, name)] = std::move(values);
    if (saved == Saved::kWeights || !entry.table->spec().policy.counts_waiting()) continue;
    TableContent waiting = gathered_waiting(*entry.table);
    out.states[Step::optimizer_state(weight, kWaitingKeys)] = std::move(waiting.keys);
    out.states[Step::optimizer_state(weight, kWaiting)] = std::move(waiting.weight);
  }
  return out;
}

namespace {

std::string folder_of(const std::string& checkpoint, const std::string& table) {
  return (fs::path(checkpoint) / tables::kTablesFolder / tables::folder_name(table)).string();
}

}  // namespace

std::optional<std::string> Tables::base_of_delta(const std::string& folder,
                                                 const std::string& below, const RowTable& table,
                                                 int64_t step) {
  if (!table.tracks_changes() || saved_step_ < 0 || saved_step_ == step) return std::nullopt;
  const fs::path before = fs::path(folder).parent_path() / std::to_string(saved_step_) / below;
  bool is_there = false;
  if (exchange_.is_root() && file_exists((before / tables::kManifest).string())) try {
      const tables::SavedChain chain = tables::read_chain(before.string());
      is_there = static_cast<int64_t>(chain.delta_steps.size()) < most_deltas_ &&
                 2 * chain.delta_bytes <= chain.base_bytes;
    } catch (const Error&) {
      // A damaged one is not a base.
    }
  if (exchange_.sum(is_there ? 1 : 0) == 0) return std::nullopt;
  return before.string();
}

std::vector<std::string> Tables::write_own_files(const std::string& folder, int64_t step) {
  finish_removal();
  std::vector<std::string> out;
  // Collects what the ranks have written below a folder of the checkpoint.
  const auto finish = [&](const fs::path& below, const tables::TableFormat& format,
                          const std::string& mine, const std::optional<std::string>& before = {},
                          int64_t count = 0) {
    std::vector<std::byte> message;
    append(message, std::as_bytes(std::span(mine)));
    const RankMessages all = exchange_.gather(std::move(message));
    if (!exchange_.is_root()) return;
    std::vector<std::string> parts;
    for (const auto& part : all)
      parts.emplace_back(reinterpret_cast<const char*>(part.data()), part.size());
    const std::string place = (fs::path(folder) / below).string();
    if (before)
      tables::write_delta_manifest(place, *before, format, step, count, parts);
    else
      tables::write_manifest(place, format, step, parts);
    out.push_back((below / tables::kManifest).string());
  };
  for (const auto& [path, entry] : tables_) {
    if (!is_large(*entry.table)) continue;
    const fs::path below = fs::path(tables::kTablesFolder) / tables::folder_name(path);
    const auto shards = exchange_.own_shards();
    const std::string place = (fs::path(folder) / below).string();
    const auto before = base_of_delta(folder, below.string(), *entry.table, step);
    const int64_t count = before ? exchange_.sum(entry.table->count()) : 0;
    finish(below, entry.table->format(),
           before ? entry.table->write_changes(place, shards, step)
                  : entry.table->write(place, shards, step),
           before, count);
    entry.table->begin_changes();
    if (!entry.table->spec().policy.counts_waiting()) continue;
    const fs::path waiting = below / kWaiting;
    finish(waiting, program::waiting_format(entry.table->spec()),
           entry.table->write_waiting((fs::path(folder) / waiting).string(), shards, step));
  }
  saved_step_ = step;
  return out;
}

bool Tables::has_name(const std::string& name) const {
  return std::any_of(tables_.begin(), tables_.end(), [&](const auto& each) {
    const std::string weight = table_weight(each.first);
    return name == table_keys(each.first) || name == weight ||
           name.starts_with(Step::optimizer_state(weight, ""));
  });
}

void Tables::remove_names(std::vector<std::string>& names) const {
  std::erase_if(names, [&](const std::string& name) { return has_name(name); });
}

std::vector<std::string> Tables::names() const {
  std::vector<std::string> out;
  for (const auto& [path, entry] : tables_) {
    out.push_back(table_keys(path));
    out.push_back(table_weight(path));
  }
  return out;
}

std::vector<std::string> Tables::paths() const {
  std::vector<std::string> out;
  for (const auto& [path, entry] : tables_) out.push_back(path);
  return out;
}

std::vector<tables::TableFormat> Tables::formats() const {
  std::vector<tables::TableFormat> out;
  for (const auto& [path, entry] : tables_) out.push_back(entry.table->format());
  return out;
}

std::vector<std::string> Tables::weights() const {
  std::vector<std::string> out;
  for (const auto& [path, entry] : tables_) out.push_back(table_weight(path));
  return out;
}

Tables::Contents Tables::contents_of(const formats::SafetensorsReader& weights,
                                     const formats::SafetensorsReader* states) const {
  Contents out;
  for (const auto& [path, entry] : tables_) {
    const program::TableSpec& spec = entry.table->spec();
    TableParts& parts = out[path];
    const std::string own = folder_of(fs::path(weights.path()).parent_path().string(), path);
    if (states && file_exists((fs::path(own) / tables::kManifest).string())) {
      parts.rows = tables::read_segments(own, entry.table->format(), exchange_.own_shards(),
                                         exchange_.is_root());
      const std::string waiting = (fs::path(own) / kWaiting).string();
      if (spec.policy.counts_waiting() &&
          file_exists((fs::path(waiting) / tables::kManifest).string()))
        parts.waiting = tables::read_segments(waiting, program::waiting_format(spec),
                                              exchange_.own_shards(), exchange_.is_root());
      continue;
    }
    TableContent& content = parts.rows.emplace_back();
    for (const std::string& name : {table_keys(path), table_weight(path)})
      if (!weights.find(name))
        fail(ErrorCode::kModel, weights.path(), ": lacks '", name, "' of a sparse_embedding");
    content.keys = weights.read(table_keys(path));
    content.weight = weights.read(table_weight(path));
    program::check_content(spec, content, weights.path());
    if (!states) continue;
    const auto state_name = [weight = table_weight(path)](const std::string& name) {
      return Step::optimizer_state(weight, name);
    };
    for (const std::string& state : entry.table->format().states) {
      const std::string name = state_name(state);
      if (!states->find(name)) fail(ErrorCode::kModel, states->path(), ": lacks '", name, "'");
      content.states.emplace_back(state, states->read(name));
    }
    for (const std::string& statistic : entry.table->format().statistics)
      if (states->find(state_name(statistic)))
        content.statistics.emplace_back(statistic, states->read(state_name(statistic)));
    program::check_content(spec, content, states->path());
    if (!spec.policy.counts_waiting() || !states->find(state_name(kWaiting)) ||
        !states->find(state_name(kWaitingKeys)))
      continue;
    TableContent& waiting = parts.waiting.emplace_back();
    waiting.keys = states->read(state_name(kWaitingKeys));
    waiting.weight = states->read(state_name(kWaiting));
    program::check_content(program::waiting_spec(spec), waiting, states->path());
  }
  return out;
}

void Tables::restore(const Contents& contents) {
  sweeps_left_ = 0;
  announced_ = answered_ = false;
  for (const auto& [path, parts] : contents) {
    RowTable& table = *tables_.at(path).table;
    table.clear(store_.seed);
    for (const TableContent& part : parts.rows) table.add(part, exchange_.own_shards());
    for (const TableContent& part : parts.waiting) table.add_waiting(part, exchange_.own_shards());
  }
}

program::FurtherTensors Tables::of_checkpoint(Contents& contents) const {
  return {[this](const std::string& name) { return has_name(name); },
          [this, &contents](const formats::SafetensorsReader& weights,
                            const formats::SafetensorsReader& optimizer) {
            contents = contents_of(weights, &optimizer);
          }};
}

std::vector<std::string> Tables::summary() const {
  std::vector<std::string> out;
  for (const auto& [path, entry] : tables_) {
    const program::TableSpec& spec = entry.table->spec();
    out.push_back(str("table ", path, ": ", entry.table->count(), " rows of ", text(spec.dtype),
                      "[", spec.width, "]", exchange_.ranks() > 1 ? " on this rank" : "", ", ",
                      human_bytes(entry.table->record_bytes() + 3),
                      " a key with its optimizer states", is_trained(path) ? "" : "; frozen"));
  }
  return out;
}

}  // namespace paddle::train
