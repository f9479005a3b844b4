// Tables in files: among the parameters and states of a store, or in files of their own.

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <numeric>

#include "base/files.h"
#include "base/text.h"
#include "tables/mapped_table.h"
#include "train/step/step.h"
#include "train/tables/tables.h"

namespace paddle::train {

namespace fs = std::filesystem;
using program::table_keys;
using program::table_weight;
using tables::kWaiting;
using tables::kWaitingKeys;

namespace {

/// In the folder of a run: bases that are not in a checkpoint yet.
constexpr std::string_view kMergingPrefix = "merging-";
/// In a checkpoint: what workers have themselves, by their numbers.
constexpr const char* kWorkersFolder = "workers";

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

/// Pieces of a table by rising keys.
TableContent joined(std::vector<TableContent> pieces, bool is_signed) {
  struct Found {
    uint64_t order;
    size_t piece;
    int64_t at;
  };
  std::vector<Found> found;
  std::vector<std::vector<Column>> columns;
  for (size_t piece = 0; piece < pieces.size(); ++piece) {
    columns.push_back(columns_of(pieces[piece]));
    ensure(columns[piece].size() == columns[0].size(), "tables: owners differ");
    const auto* const keys = static_cast<const uint64_t*>(pieces[piece].keys.raw());
    for (int64_t i = 0; i < pieces[piece].keys.shape[0]; ++i)
      found.push_back({tables::ordered(keys[i], is_signed), piece, i});
  }
  std::sort(found.begin(), found.end(),
            [](const Found& a, const Found& b) { return a.order < b.order; });
  std::vector<Array> whole;
  for (size_t column = 0; column < columns[0].size(); ++column) {
    const Array& first = *columns[0][column].array;
    const size_t bytes = columns[0][column].bytes;
    Dims shape = first.shape;
    shape[0] = static_cast<int64_t>(found.size());
    auto* to = static_cast<std::byte*>(whole.emplace_back(Array::empty(first.dtype, shape)).raw());
    for (const Found& each : found) {
      const auto* const from =
          static_cast<const std::byte*>(columns[each.piece][column].array->raw());
      std::memcpy(to, from + static_cast<size_t>(each.at) * bytes, bytes);
      to += bytes;
    }
  }
  TableContent out = std::move(pieces[0]);
  const std::vector<Column> places = columns_of(out);
  for (size_t column = 0; column < places.size(); ++column)
    *places[column].array = std::move(whole[column]);
  return out;
}

/// The contents of all ranks, on rank 0, whose types and shapes are those of `mine`.
std::vector<TableContent> contents_of_ranks(TableExchange& exchange, TableContent mine) {
  const std::vector<Column> columns = columns_of(mine);
  std::vector<std::byte> message;
  size_t row_bytes = 0;
  for (const Column& column : columns) {
    append(message, std::span(static_cast<const std::byte*>(column.array->raw()),
                              static_cast<size_t>(mine.keys.shape[0]) * column.bytes));
    row_bytes += column.bytes;
  }
  std::vector<TableContent> out;
  for (const std::vector<std::byte>& each : exchange.gather(std::move(message))) {
    const size_t count = each.size() / row_bytes;
    const std::byte* from = each.data();
    TableContent& content = out.emplace_back(mine);
    for (const Column& column : columns_of(content)) {
      Dims shape = column.array->shape;
      shape[0] = static_cast<int64_t>(count);
      *column.array = Array::empty(column.array->dtype, shape);
      if (count > 0) std::memcpy(column.array->raw(), from, count * column.bytes);
      from += count * column.bytes;
    }
  }
  return out;
}

/// The same types and shapes with this many rows and no values.
TableContent without_values(TableContent content, int64_t count) {
  for (const Column& column : columns_of(content)) {
    Dims shape = column.array->shape;
    shape[0] = count;
    *column.array = Array::reserve(column.array->dtype, shape);
  }
  return content;
}

}  // namespace

TableContent Tables::gathered(const Entry& entry, bool states) {
  if (is_local()) return entry.table->content(states);
  const int64_t count = count_all(entry).rows;
  TableContent mine = entry.table->content(states);
  TableContent shapes = without_values(mine, count);
  std::vector<TableContent> pieces = connect_ ? pieces_on_servers(entry, false, states)
                                              : contents_of_ranks(exchange_, std::move(mine));
  if (!exchange_.is_root()) return shapes;
  return joined(std::move(pieces), entry.table->spec().key == DType::kI64);
}

TableContent Tables::gathered_waiting(const Entry& entry) {
  if (is_local()) return entry.table->waiting();
  const int64_t count = count_all(entry).waiting;
  TableContent mine = entry.table->waiting();
  TableContent shapes = without_values(mine, count);
  std::vector<TableContent> pieces = connect_ ? pieces_on_servers(entry, true, true)
                                              : contents_of_ranks(exchange_, std::move(mine));
  if (!exchange_.is_root()) return shapes;
  return joined(std::move(pieces), entry.table->spec().key == DType::kI64);
}

bool Tables::is_large(const Entry& entry) {
  return static_cast<uint64_t>(count_all(entry).rows) * entry.table->payload_bytes() > kMaxInline;
}

bool Tables::has_own_files() {
  finish_removal();
  bool any = false;
  for (auto& [path, entry] : tables_) any = is_large(entry) || has_own_states(path, entry) || any;
  return any;
}

program::ParameterStore Tables::with_tables(const program::ParameterStore& store, Saved saved) {
  finish_removal();
  program::ParameterStore out = store;
  for (const auto& [path, entry] : tables_) {
    if (saved == Saved::kInline && is_large(entry)) continue;
    TableContent content = gathered(entry, saved != Saved::kWeights);
    const std::string weight = table_weight(path);
    out.parameters[table_keys(path)] = {std::move(content.keys), ""};
    out.parameters[weight] = {std::move(content.weight), entry.table->spec().init.text()};
    for (auto& [slot, values] : content.states)
      out.states[Step::optimizer_state(weight, slot)] = std::move(values);
    for (auto& [name, values] : content.statistics)
      out.states[Step::optimizer_state(weight, name)] = std::move(values);
    if (saved == Saved::kWeights || !entry.table->spec().policy.counts_waiting()) continue;
    TableContent waiting = gathered_waiting(entry);
    out.states[Step::optimizer_state(weight, kWaitingKeys)] = std::move(waiting.keys);
    out.states[Step::optimizer_state(weight, kWaiting)] = std::move(waiting.weight);
  }
  return out;
}

namespace {

std::string folder_of(const std::string& checkpoint, const std::string& table) {
  return (fs::path(checkpoint) / tables::kTablesFolder / tables::folder_name(table)).string();
}

/// The folder of a worker's own rows of a table.
std::string own_folder(const std::string& checkpoint, int worker, const std::string& table) {
  return folder_of((fs::path(checkpoint) / kWorkersFolder / std::to_string(worker)).string(),
                   table);
}

}  // namespace

bool Tables::has_own_states(const std::string& path, const Entry& entry) const {
  const tables::TableFormat& format = entry.table->format();
  return has_own_rows(path) && !(format.states.empty() && format.statistics.empty());
}

std::vector<TableContent> Tables::own_rows_of(const std::string& checkpoint,
                                              const std::string& path, const Entry& entry) const {
  std::vector<TableContent> out;
  for (int worker = 0; worker < exchange_.ranks(); ++worker) {
    // The root checks those of all workers before anything is replaced.
    const bool is_mine = worker == exchange_.rank();
    const std::string place = own_folder(checkpoint, worker, path);
    if (!(is_mine || exchange_.is_root()) ||
        !file_exists((fs::path(place) / tables::kManifest).string()))
      continue;
    auto rows = tables::read_segments(place, entry.table->format(), {0, tables::kShards}, true);
    if (is_mine) out = std::move(rows);
  }
  return out;
}

std::vector<std::string> Tables::write_own_states(const std::string& folder, int64_t step) {
  std::vector<std::string> out;
  for (const auto& [path, entry] : tables_) {
    if (!has_own_states(path, entry)) continue;
    const std::string place = own_folder(folder, exchange_.rank(), path);
    const std::string parts = entry.table->write(place, {0, tables::kShards}, step);
    tables::write_manifest(place, entry.table->format(), step, {&parts, 1});
    exchange_.sum(0);  // all are there
    for (int worker = 0; exchange_.is_root() && worker < exchange_.ranks(); ++worker)
      out.push_back((fs::path(own_folder("", worker, path)) / tables::kManifest).string());
  }
  return out;
}

std::optional<Tables::SavedBefore> Tables::find_saved_before(const std::string& place,
                                                             const std::string& folder,
                                                             Entry& entry) {
  if (!file_exists((fs::path(place) / tables::kManifest).string())) return std::nullopt;
  SavedBefore out{place, ""};
  try {
    const tables::SavedChain chain = tables::read_chain(place);
    const auto deltas = static_cast<int64_t>(chain.delta_steps.size());
    const bool is_long = deltas >= opening_.max_deltas || 2 * chain.delta_bytes > chain.base_bytes;
    if (entry.chain_merge && (entry.chain_merge->is_over() || deltas >= 2 * opening_.max_deltas)) {
      if (!entry.chain_merge->wait()) return std::nullopt;
      out.base = entry.chain_merge->base();
    } else if (is_long && !entry.chain_merge) {
      entry.chain_merge = std::make_unique<ChainMerge>(place, folder, entry.table->format());
    }
  } catch (const Error&) {
    return std::nullopt;  // a damaged one is not a base
  }
  return out;
}

std::optional<Tables::SavedBefore> Tables::saved_before(const std::string& folder,
                                                        const std::string& below, Entry& entry,
                                                        int64_t step) {
  if (!entry.table->tracks_changes() || saved_step_ == step) return std::nullopt;
  const fs::path checkpoints = fs::path(folder).parent_path();
  const std::string merging = (checkpoints.parent_path() /
                               str(kMergingPrefix, tables::folder_name(entry.table->spec().path)))
                                  .string();
  if (saved_step_ < 0) {
    std::error_code ignored;
    if (exchange_.is_root()) fs::remove_all(merging, ignored);  // of a run that was killed
    return std::nullopt;
  }
  std::optional<SavedBefore> out;
  if (exchange_.is_root())
    out = find_saved_before((checkpoints / std::to_string(saved_step_) / below).string(), merging,
                            entry);
  if (exchange_.sum(out ? 1 : 0) == 0) return std::nullopt;
  return out ? out : SavedBefore();
}

std::vector<std::string> Tables::write_parts(Entry& entry, ps::SavedPart part,
                                             const std::string& folder, int64_t step) {
  std::vector<std::string> out;
  if (connect_) {
    if (!exchange_.is_root()) return out;
    ps::BodyWriter body;
    body.add(static_cast<uint8_t>(part));
    body.add(step);
    body.add_text(fs::path(folder).lexically_relative(folder_).string());
    for (const ps::Message& each :
         client_->ask(ps::Kind::kSave, ps::Kind::kSaved, *entry.number, body.bytes()))
      out.push_back(ps::BodyReader(each.body).take_text());
    return out;
  }
  const auto shards = exchange_.own_shards();
  const RowTable& table = *entry.table;
  const std::string mine =
      part == ps::SavedPart::kWaiting   ? table.write_waiting(folder, shards, step)
      : part == ps::SavedPart::kChanges ? table.write_changes(folder, shards, step)
                                        : table.write(folder, shards, step);
  std::vector<std::byte> message;
  append(message, std::as_bytes(std::span(mine)));
  for (const auto& each : exchange_.gather(std::move(message)))
    out.emplace_back(reinterpret_cast<const char*>(each.data()), each.size());
  return out;
}

std::vector<std::string> Tables::write_own_files(const std::string& folder, int64_t step) {
  finish_removal();
  std::vector<std::string> out, written;
  for (auto& [path, entry] : tables_) {
    if (!is_large(entry)) continue;
    const fs::path below = fs::path(tables::kTablesFolder) / tables::folder_name(path);
    const std::string place = (fs::path(folder) / below).string();
    const auto before = saved_before(folder, below.string(), entry, step);
    const int64_t count = before ? count_all(entry).rows : 0;
    const std::vector<std::string> parts =
        write_parts(entry, before ? ps::SavedPart::kChanges : ps::SavedPart::kAll, place, step);
    written.push_back(path);
    const auto add_manifest = [&](const fs::path& of) {
      out.push_back((of / tables::kManifest).string());
    };
    if (exchange_.is_root()) {
      if (before)
        tables::write_delta_manifest(place, before->place, entry.table->format(), step, count,
                                     parts, before->base);
      else
        tables::write_manifest(place, entry.table->format(), step, parts);
      if (!before || !before->base.empty()) entry.chain_merge.reset();
      add_manifest(below);
    }
    if (!entry.table->spec().policy.counts_waiting()) continue;
    const fs::path waiting = below / kWaiting;
    const std::string waiting_place = (fs::path(folder) / waiting).string();
    const std::vector<std::string> waiting_files =
        write_parts(entry, ps::SavedPart::kWaiting, waiting_place, step);
    if (!exchange_.is_root()) continue;
    tables::write_manifest(waiting_place, program::waiting_format(entry.table->spec()), step,
                           waiting_files);
    add_manifest(waiting);
  }
  begin_changes(written);
  const std::vector<std::string> own = write_own_states(folder, step);
  out.insert(out.end(), own.begin(), own.end());
  saved_step_ = step;
  return out;
}

void Tables::begin_changes(const std::vector<std::string>& paths) {
  if (connect_) {
    ps::BodyWriter body;
    for (const std::string& path : paths) body.add(*tables_.at(path).number);
    if (!paths.empty()) client_->happen(ps::Kind::kMark, body.take());
    return;
  }
  for (const std::string& path : paths) tables_.at(path).table->begin_changes();
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
  // Servers get the rows from the root.
  const std::pair<int, int> shards = !connect_             ? exchange_.own_shards()
                                     : exchange_.is_root() ? std::pair(0, tables::kShards)
                                                           : std::pair(0, 0);
  for (const auto& [path, entry] : tables_) {
    const program::TableSpec& spec = entry.table->spec();
    TableParts& parts = out[path];
    const std::string checkpoint = fs::path(weights.path()).parent_path().string();
    if (states && has_own_states(path, entry)) parts.own = own_rows_of(checkpoint, path, entry);
    const std::string own = folder_of(checkpoint, path);
    if (states && file_exists((fs::path(own) / tables::kManifest).string())) {
      if (shards.second == 0) continue;
      parts.rows = tables::read_segments(own, entry.table->format(), shards, exchange_.is_root());
      const std::string waiting = (fs::path(own) / kWaiting).string();
      if (spec.policy.counts_waiting() &&
          file_exists((fs::path(waiting) / tables::kManifest).string()))
        parts.waiting = tables::read_segments(waiting, program::waiting_format(spec), shards,
                                              exchange_.is_root());
      continue;
    }
    TableContent& content = parts.rows.emplace_back();
    if (!states && !weights.find(table_keys(path)) &&
        file_exists((fs::path(own) / tables::kManifest).string())) {
      content = tables::MappedTable::open(own)->sorted_content();
      program::check_content(spec, content, own);
      continue;
    }
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
  for (auto& [path, entry] : tables_) entry.chain_merge.reset();
  sweeps_left_ = 0;
  stop_training();
  drop_answers();
  if (is_geo()) restore_own(contents);
  if (connect()) return restore_servers(contents);
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

std::vector<std::string> Tables::summary() {
  std::vector<std::string> out;
  for (const auto& [path, entry] : tables_) {
    const program::TableSpec& spec = entry.table->spec();
    // A run that only describes itself does not connect.
    const int64_t rows = client_ ? count_all(entry).rows : entry.table->count();
    out.push_back(str("table ", path, ": ", rows, " rows of ", text(spec.dtype), "[", spec.width,
                      "]",
                      connect_                ? " on servers"
                      : exchange_.ranks() > 1 ? " on this rank"
                                              : "",
                      ", ", human_bytes(entry.table->record_bytes() + 3),
                      " a key with its optimizer states", is_trained(path) ? "" : "; frozen"));
  }
  return out;
}

}  // namespace paddle::train
