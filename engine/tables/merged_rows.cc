#include "tables/merged_rows.h"

#include <algorithm>
#include <cstring>

#include "tables/shards.h"

namespace paddle::tables {
namespace {

/// A row of the result: of the delta or of what was before.
struct Source {
  bool of_delta;
  int64_t row;
};

struct Keys {
  explicit Keys(const Array& array, bool is_signed)
      : keys(static_cast<const uint64_t*>(array.raw())), count(array.size()), sign(is_signed) {}
  bool at_end() const { return at == count; }
  std::pair<int, uint64_t> place() const { return {shard_of(keys[at]), ordered(keys[at], sign)}; }

  const uint64_t* keys;
  int64_t count, at = 0;
  bool sign;
};

std::vector<Source> sources_of(const TableContent& before, const TableContent& delta,
                               const Array& deleted, bool is_signed) {
  std::vector<Source> out;
  out.reserve(static_cast<size_t>(before.keys.size() + delta.keys.size()));
  Keys old(before.keys, is_signed), next(delta.keys, is_signed), gone(deleted, is_signed);
  while (!old.at_end() || !next.at_end()) {
    if (old.at_end() || (!next.at_end() && next.place() <= old.place())) {
      if (!old.at_end() && next.place() == old.place()) ++old.at;
      out.push_back({true, next.at++});
      continue;
    }
    while (!gone.at_end() && gone.place() < old.place()) ++gone.at;
    if (gone.at_end() || gone.place() != old.place()) out.push_back({false, old.at});
    ++old.at;
  }
  return out;
}

const Array* find(const std::vector<std::pair<std::string, Array>>& columns,
                  const std::string& name) {
  const auto at = std::find_if(columns.begin(), columns.end(),
                               [&](const auto& each) { return each.first == name; });
  return at == columns.end() ? nullptr : &at->second;
}

/// The rows of a column; `before` may be null.
Array gathered(const Array* before, const Array& delta, const std::vector<Source>& sources) {
  Dims shape = delta.shape;
  shape[0] = static_cast<int64_t>(sources.size());
  int64_t elements = 1;
  for (size_t d = 1; d < shape.size(); ++d) elements *= shape[d];
  const auto bytes = static_cast<size_t>(storage_bytes(delta.dtype, elements));
  Array out = Array::empty(delta.dtype, shape);
  auto* to = static_cast<std::byte*>(out.raw());
  for (const Source& source : sources) {
    const Array* const from = source.of_delta ? &delta : before;
    if (from)
      std::memcpy(
          to, static_cast<const std::byte*>(from->raw()) + static_cast<size_t>(source.row) * bytes,
          bytes);
    else
      std::memset(to, 0, bytes);
    to += bytes;
  }
  return out;
}

}  // namespace

TableContent merged_rows(const TableContent& before, const TableContent& delta,
                         const Array& deleted, bool is_signed) {
  const std::vector<Source> sources = sources_of(before, delta, deleted, is_signed);
  TableContent out;
  out.keys = gathered(&before.keys, delta.keys, sources);
  out.weight = gathered(&before.weight, delta.weight, sources);
  for (const auto& [name, values] : delta.states)
    out.states.emplace_back(name, gathered(find(before.states, name), values, sources));
  for (const auto& [name, values] : delta.statistics)
    out.statistics.emplace_back(name, gathered(find(before.statistics, name), values, sources));
  return out;
}

RecordTable records_of(const TableFormat& format, const std::vector<TableContent>& parts,
                       std::pair<int, int> shards) {
  RecordTable out(format.dtype, format.width, static_cast<int64_t>(format.states.size()),
                  format.statistics.size() * sizeof(float));
  for (const TableContent& part : parts)
    for (int64_t row = 0; row < part.keys.size(); ++row) {
      const uint64_t key = static_cast<const uint64_t*>(part.keys.raw())[row];
      const int shard = shard_of(key);
      if (shard < shards.first || shard >= shards.second) continue;
      std::byte* to = out.insert(key);
      const auto put = [&](const Array& values, size_t bytes) {
        std::memcpy(to,
                    static_cast<const std::byte*>(values.raw()) + static_cast<size_t>(row) * bytes,
                    bytes);
        to += bytes;
      };
      put(part.weight, out.row_bytes());
      for (const auto& [name, values] : part.states) put(values, out.row_bytes());
      for (const auto& [name, values] : part.statistics) put(values, sizeof(float));
    }
  return out;
}

}  // namespace paddle::tables
