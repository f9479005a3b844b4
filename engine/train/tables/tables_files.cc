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

TableContent Tables::gathered(const RowTable& table, bool states) {
  if (exchange_.ranks() == 1) return table.content(states);
  const program::TableSpec& spec = table.spec();
  const int64_t count = exchange_.sum(table.count());
  TableContent out;
  const auto make = [&](DType dtype, Dims shape) {
    return exchange_.is_root() ? Array::empty(dtype, std::move(shape))
                               : Array::reserve(dtype, std::move(shape));
  };
  out.keys = make(spec.key, {count});
  out.weight = make(spec.dtype, {count, spec.width});
  if (states)
    for (const std::string& state : table.format().states)
      out.states.emplace_back(state, make(spec.dtype, {count, spec.width}));
  const TableContent mine = table.content(states);
  const auto bytes_of = [](const Array& array) {
    return std::span(static_cast<const std::byte*>(array.raw()),
                     static_cast<size_t>(storage_bytes(array.dtype, array.size())));
  };
  std::vector<std::byte> message;
  append(message, bytes_of(mine.keys));
  append(message, bytes_of(mine.weight));
  for (const auto& [name, values] : mine.states) append(message, bytes_of(values));
  const RankMessages all = exchange_.gather(std::move(message));
  if (!exchange_.is_root()) return out;
  struct Found {
    uint64_t order, key;
    size_t rank, at;
  };
  std::vector<Found> found;
  const size_t bytes = table.row_bytes();
  const bool is_signed = spec.key == DType::kI64;
  std::vector<size_t> counts;
  for (size_t rank = 0; rank < all.size(); ++rank) {
    counts.push_back(all[rank].size() / (sizeof(uint64_t) + bytes * (1 + out.states.size())));
    for (size_t i = 0; i < counts[rank]; ++i) {
      uint64_t key = 0;
      std::memcpy(&key, all[rank].data() + i * sizeof key, sizeof key);
      found.push_back({tables::ordered(key, is_signed), key, rank, i});
    }
  }
  std::sort(found.begin(), found.end(),
            [](const Found& a, const Found& b) { return a.order < b.order; });
  ensure(static_cast<int64_t>(found.size()) == count, "table '", spec.path, "': ranks differ");
  for (size_t i = 0; i < found.size(); ++i)
    static_cast<uint64_t*>(out.keys.raw())[i] = found[i].key;
  const auto fill = [&](size_t column, const Array& to) {
    for (size_t i = 0; i < found.size(); ++i) {
      const Found& each = found[i];
      const size_t begin = counts[each.rank] * (sizeof(uint64_t) + column * bytes);
      std::memcpy(static_cast<std::byte*>(to.raw()) + i * bytes,
                  all[each.rank].data() + begin + each.at * bytes, bytes);
    }
  };
  fill(0, out.weight);
  for (size_t i = 0; i < out.states.size(); ++i) fill(1 + i, out.states[i].second);
  return out;
}

bool Tables::is_large(const RowTable& table) const {
  return static_cast<uint64_t>(exchange_.sum(table.count())) * table.payload_bytes() > kMaxInline;
}

bool Tables::has_own_files() {
  bool any = false;
  for (auto& [path, entry] : tables_) any = is_large(*entry.table) || any;
  return any;
}

program::ParameterStore Tables::with_tables(const program::ParameterStore& store, Saved saved) {
  program::ParameterStore out = store;
  for (const auto& [path, entry] : tables_) {
    if (saved == Saved::kInline && is_large(*entry.table)) continue;
    TableContent content = gathered(*entry.table, saved != Saved::kWeights);
    const std::string weight = table_weight(path);
    out.parameters[table_keys(path)] = {std::move(content.keys), ""};
    out.parameters[weight] = {std::move(content.weight), entry.table->spec().init.text()};
    for (auto& [slot, values] : content.states)
      out.states[Step::optimizer_state(weight, slot)] = std::move(values);
  }
  return out;
}

namespace {

std::string folder_of(const std::string& checkpoint, const std::string& table) {
  return (fs::path(checkpoint) / tables::kTablesFolder / tables::folder_name(table)).string();
}

}  // namespace

std::vector<std::string> Tables::write_own_files(const std::string& folder, int64_t step) {
  std::vector<std::string> out;
  for (const auto& [path, entry] : tables_) {
    if (!is_large(*entry.table)) continue;
    const std::string place = folder_of(folder, path);
    const std::string mine = entry.table->write(place, exchange_.own_shards(), step);
    std::vector<std::byte> message;
    append(message, std::as_bytes(std::span(mine)));
    const RankMessages all = exchange_.gather(std::move(message));
    if (!exchange_.is_root()) continue;
    std::vector<std::string> parts;
    for (const auto& part : all)
      parts.emplace_back(reinterpret_cast<const char*>(part.data()), part.size());
    tables::write_manifest(place, entry.table->format(), step, parts);
    out.push_back(
        (fs::path(tables::kTablesFolder) / tables::folder_name(path) / tables::kManifest).string());
  }
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
    const std::string own = folder_of(fs::path(weights.path()).parent_path().string(), path);
    if (states && file_exists((fs::path(own) / tables::kManifest).string())) {
      out[path] = tables::read_segments(own, entry.table->format(), exchange_.own_shards(),
                                        exchange_.is_root());
      continue;
    }
    TableContent& content = out[path].emplace_back();
    for (const std::string& name : {table_keys(path), table_weight(path)})
      if (!weights.find(name))
        fail(ErrorCode::kModel, weights.path(), ": lacks '", name, "' of a sparse_embedding");
    content.keys = weights.read(table_keys(path));
    content.weight = weights.read(table_weight(path));
    program::check_content(spec, content, weights.path());
    if (!states) continue;
    for (const optim::StateSlot& slot : rule_->slots(table_weight(path), {1, spec.width})) {
      const std::string name = Step::optimizer_state(table_weight(path), slot.name);
      if (!states->find(name)) fail(ErrorCode::kModel, states->path(), ": lacks '", name, "'");
      content.states.emplace_back(slot.name, states->read(name));
    }
    program::check_content(spec, content, states->path());
  }
  return out;
}

void Tables::restore(const Contents& contents) {
  announced_ = answered_ = false;
  for (const auto& [path, parts] : contents) {
    RowTable& table = *tables_.at(path).table;
    table.clear(store_.seed);
    for (const TableContent& part : parts) table.add(part, exchange_.own_shards());
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
