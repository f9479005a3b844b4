#include "tables/mapped_table.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "base/error.h"
#include "formats/safetensors.h"

namespace paddle::tables {
namespace {

/// Keys that are searched together, so that their memory arrives in parallel.
constexpr size_t kTogether = 32;
/// Positions that are estimated from the values of keys before the search halves what is left.
constexpr int kEstimates = 6;
/// Keys of a cache line.
constexpr int64_t kLine = 8;

template <class From, class To>
void convert(const std::byte* from, float scale, int64_t width, std::byte* to) {
  for (int64_t i = 0; i < width; ++i) {
    From value;
    std::memcpy(&value, from + static_cast<size_t>(i) * sizeof value, sizeof value);
    To out = static_cast<To>(value);
    if constexpr (std::is_same_v<From, int8_t>) out *= static_cast<To>(scale);
    std::memcpy(to + static_cast<size_t>(i) * sizeof out, &out, sizeof out);
  }
}

template <class To>
void convert_row(DType from, const MappedTable::Row& row, int64_t width, std::byte* to) {
  switch (from) {
    case DType::kF32:
      return convert<float, To>(row.values, 1, width, to);
    case DType::kF64:
      return convert<double, To>(row.values, 1, width, to);
    case DType::kF16:
      return convert<float16, To>(row.values, 1, width, to);
    case DType::kBF16:
      return convert<bfloat16, To>(row.values, 1, width, to);
    default:
      return convert<int8_t, To>(row.values, row.scale, width, to);
  }
}

}  // namespace

/// Searches that advance together.
struct MappedTable::Group {
  struct Search {
    uint64_t wanted = 0;  ///< as `ordered` gives it
    const Piece* piece = nullptr;
    const uint64_t* keys = nullptr;
    int64_t begin = 0, end = 0;     ///< where the key may be
    uint64_t below = 0, above = 0;  ///< the keys are not outside of these
    int64_t at = 0, found = -1;
  };
  std::array<Search, kTogether> searches;
  std::array<uint8_t, kTogether> active{};
  size_t count = 0;  ///< of `active`
};

std::shared_ptr<const MappedTable> MappedTable::open(const std::string& folder) {
  std::shared_ptr<MappedTable> out(new MappedTable());
  TableFiles files = list_segments(folder);
  out->format_ = std::move(files.format);
  out->row_bytes_ = static_cast<size_t>(storage_bytes(out->format_.dtype, out->format_.width));
  for (size_t save = files.saves.size(); save-- > 0;) {
    Layer& layer = out->layers_.emplace_back(kShards);
    for (const SegmentFile& file : files.saves[save]) out->add_file(file, save > 0, layer);
  }
  return out;
}

MappedTable::MappedTable(std::string name, Array keys, Array weight) {
  format_ = {.name = std::move(name),
             .key = keys.dtype,
             .dtype = weight.dtype,
             .width = weight.shape[1],
             .states = {}};
  row_bytes_ = static_cast<size_t>(storage_bytes(format_.dtype, format_.width));
  stored_rows_ = keys.shape[0];
  Piece piece;
  piece.present = {static_cast<const uint64_t*>(keys.raw()), stored_rows_};
  piece.rows = static_cast<const std::byte*>(weight.raw());
  layers_.push_back({piece});
  storage_ = {std::move(keys), std::move(weight)};
}

uint64_t MappedTable::bytes() const {
  return static_cast<uint64_t>(stored_rows_) * (sizeof(uint64_t) + row_bytes_);
}

void MappedTable::add_file(const SegmentFile& file, bool is_delta, Layer& layer) {
  const formats::SafetensorsReader reader(file.path);
  const auto tensor = [&](const char* name, DType dtype, const Dims& shape) {
    const auto* const entry = reader.find(name);
    if (!entry || entry->dtype != dtype || entry->shape != shape)
      fail(ErrorCode::kModel, file.path, ": lacks '", name, "' as ", text(dtype), str(shape));
    return storage_.emplace_back(reader.read(*entry)).raw();
  };
  const auto* keys = static_cast<const uint64_t*>(tensor("keys", format_.key, {file.count}));
  const auto* rows =
      static_cast<const std::byte*>(tensor("weight", format_.dtype, {file.count, format_.width}));
  const float* scales = nullptr;
  if (format_.dtype == DType::kI8)
    scales = static_cast<const float*>(tensor(kRowScale, DType::kF32, {file.count}));
  for (size_t i = 0; i < file.rows.size(); ++i) {
    Piece& piece = layer[static_cast<size_t>(file.first_shard) + i];
    piece.present = {keys, file.rows[i]};
    piece.rows = rows;
    piece.scales = scales;
    keys += file.rows[i];
    rows += static_cast<size_t>(file.rows[i]) * row_bytes_;
    if (scales) scales += file.rows[i];
  }
  stored_rows_ += file.count;
  if (!is_delta || file.deleted == 0) return;
  const auto* deleted =
      static_cast<const uint64_t*>(tensor(kDeletedKeys, format_.key, {file.deleted}));
  const uint64_t* const end = deleted + file.deleted;
  for (size_t i = 0; i < file.rows.size(); ++i) {
    const int shard = file.first_shard + static_cast<int>(i);
    const uint64_t* const next = std::partition_point(
        deleted, end, [shard](uint64_t key) { return shard_of(key) <= shard; });
    layer[static_cast<size_t>(shard)].deleted = {deleted, next - deleted};
    deleted = next;
  }
}

const MappedTable::Piece& MappedTable::piece_of(const Layer& layer, uint64_t key) const {
  return layer[layer.size() == 1 ? 0 : static_cast<size_t>(shard_of(key))];
}

/// Sets `found` of the active searches: the place of the key in the keys of its piece, or -1.
void MappedTable::search(Group& group, const Layer& layer, bool deleted) const {
  std::array<uint8_t, kTogether> begun{}, running{};
  size_t begun_count = 0, count = 0;
  for (size_t i = 0; i < group.count; ++i) {
    Group::Search& each = group.searches[group.active[i]];
    const uint64_t key = ordered(each.wanted, is_signed());
    each.piece = &piece_of(layer, key);
    const Sorted& keys = deleted ? each.piece->deleted : each.piece->present;
    each.keys = keys.keys;
    each.begin = 0;
    each.end = keys.count;
    each.found = -1;
    if (keys.count == 0) continue;
    __builtin_prefetch(keys.keys);
    __builtin_prefetch(keys.keys + keys.count - 1);
    begun[begun_count++] = group.active[i];
  }
  for (size_t i = 0; i < begun_count; ++i) {
    Group::Search& each = group.searches[begun[i]];
    each.below = ordered(each.keys[0], is_signed());
    each.above = ordered(each.keys[each.end - 1], is_signed());
    if (each.wanted >= each.below && each.wanted <= each.above) running[count++] = begun[i];
  }
  for (int round = 0; count > 0; ++round) {
    for (size_t i = 0; i < count; ++i) {
      Group::Search& each = group.searches[running[i]];
      const int64_t left = each.end - each.begin;
      each.at = each.begin + left / 2;
      if (left <= kLine) {
        each.at = each.begin;
      } else if (round < kEstimates && each.above > each.below) {
        const double part = static_cast<double>(each.wanted - each.below) /
                            static_cast<double>(each.above - each.below);
        each.at = std::min(each.end - 1,
                           each.begin + static_cast<int64_t>(part * static_cast<double>(left)));
      }
      __builtin_prefetch(each.keys + each.at);
    }
    size_t kept = 0;
    for (size_t i = 0; i < count; ++i) {
      Group::Search& each = group.searches[running[i]];
      if (each.end - each.begin <= kLine) {
        const uint64_t key = ordered(each.wanted, is_signed());
        const uint64_t* const end = each.keys + each.end;
        const uint64_t* const at = std::find(each.keys + each.begin, end, key);
        if (at != end) each.found = at - each.keys;
        continue;
      }
      const uint64_t value = ordered(each.keys[each.at], is_signed());
      if (value == each.wanted) {
        each.found = each.at;
        continue;
      }
      if (value < each.wanted) {
        each.begin = each.at + 1;
        each.below = value;
      } else {
        each.end = each.at;
        each.above = value;
      }
      // Keys out of order would lead beyond both.
      if (each.begin < each.end && each.wanted >= each.below && each.wanted <= each.above)
        running[kept++] = running[i];
    }
    count = kept;
  }
}

void MappedTable::find_group(std::span<const uint64_t> keys, Row* rows) const {
  Group group;
  for (size_t i = 0; i < keys.size(); ++i) {
    group.searches[i].wanted = ordered(keys[i], is_signed());
    group.active[group.count++] = static_cast<uint8_t>(i);
    rows[i] = {};
  }
  for (size_t layer = 0; layer < layers_.size() && group.count > 0; ++layer) {
    search(group, layers_[layer], false);
    size_t kept = 0;
    for (size_t i = 0; i < group.count; ++i) {
      const Group::Search& each = group.searches[group.active[i]];
      if (each.found < 0) {
        group.active[kept++] = group.active[i];
        continue;
      }
      Row& row = rows[group.active[i]];
      row.values = each.piece->rows + static_cast<size_t>(each.found) * row_bytes_;
      if (each.piece->scales) row.scale = each.piece->scales[each.found];
    }
    group.count = kept;
    if (layer + 1 == layers_.size()) break;  // a base removes nothing
    search(group, layers_[layer], true);
    kept = 0;
    for (size_t i = 0; i < group.count; ++i)
      if (group.searches[group.active[i]].found < 0) group.active[kept++] = group.active[i];
    group.count = kept;
  }
}

void MappedTable::find(std::span<const uint64_t> keys, Row* rows) const {
  for (size_t at = 0; at < keys.size(); at += kTogether)
    find_group(keys.subspan(at, std::min(kTogether, keys.size() - at)), rows + at);
}

void MappedTable::read(std::span<const uint64_t> keys, DType dtype, std::byte* rows) const {
  const auto bytes = static_cast<size_t>(storage_bytes(dtype, format_.width));
  std::array<Row, kTogether> found;
  for (size_t at = 0; at < keys.size(); at += kTogether) {
    const size_t count = std::min(kTogether, keys.size() - at);
    find_group(keys.subspan(at, count), found.data());
    for (size_t i = 0; i < count; ++i)
      if (found[i].values) __builtin_prefetch(found[i].values);
    for (size_t i = 0; i < count; ++i, rows += bytes)
      if (found[i].values)
        put_row(found[i], dtype, rows);
      else
        std::memset(rows, 0, bytes);
  }
}

void MappedTable::put_row(const Row& row, DType dtype, std::byte* to) const {
  if (dtype == format_.dtype)
    std::memcpy(to, row.values, row_bytes_);
  else if (dtype == DType::kF64)
    convert_row<double>(format_.dtype, row, format_.width, to);
  else
    convert_row<float>(format_.dtype, row, format_.width, to);
}

int64_t MappedTable::count_rows() const {
  if (layers_.size() == 1) return stored_rows_;
  int64_t count = 0;
  for_each([&](uint64_t, const Row&) { ++count; });
  return count;
}

void MappedTable::for_each_sorted(
    const std::function<void(uint64_t key, const Row& row)>& use) const {
  struct Entry {
    uint64_t key;
    Row row;
  };
  std::vector<Entry> entries;
  for_each([&](uint64_t key, const Row& row) { entries.push_back({key, row}); });
  std::sort(entries.begin(), entries.end(), [this](const Entry& a, const Entry& b) {
    return ordered(a.key, is_signed()) < ordered(b.key, is_signed());
  });
  for (const Entry& each : entries) use(each.key, each.row);
}

TableContent MappedTable::sorted_content() const {
  const DType dtype = format_.dtype == DType::kF64 ? DType::kF64 : DType::kF32;
  const int64_t count = count_rows();
  TableContent out;
  out.keys = Array::empty(format_.key, {count});
  out.weight = Array::empty(dtype, {count, format_.width});
  auto* keys = static_cast<uint64_t*>(out.keys.raw());
  auto* to = static_cast<std::byte*>(out.weight.raw());
  for_each_sorted([&](uint64_t key, const Row& row) {
    *keys++ = key;
    put_row(row, dtype, to);
    to += storage_bytes(dtype, format_.width);
  });
  return out;
}

void MappedTable::for_each(const std::function<void(uint64_t key, const Row& row)>& use) const {
  struct Entry {
    uint64_t order, key;
    Row row;
  };
  std::vector<Entry> entries;
  for (size_t piece = 0; piece < layers_.front().size(); ++piece) {
    entries.clear();
    // The newest first; of equal keys the first one counts.
    for (const Layer& layer : layers_) {
      const Piece& each = layer[piece];
      for (int64_t i = 0; i < each.deleted.count; ++i)
        entries.push_back({ordered(each.deleted.keys[i], is_signed()), each.deleted.keys[i], {}});
      for (int64_t i = 0; i < each.present.count; ++i)
        entries.push_back(
            {ordered(each.present.keys[i], is_signed()),
             each.present.keys[i],
             {each.rows + static_cast<size_t>(i) * row_bytes_, each.scales ? each.scales[i] : 1}});
    }
    if (layers_.size() > 1)
      std::stable_sort(entries.begin(), entries.end(),
                       [](const Entry& a, const Entry& b) { return a.order < b.order; });
    for (size_t i = 0; i < entries.size(); ++i)
      if (entries[i].row.values && (i == 0 || entries[i].order != entries[i - 1].order))
        use(entries[i].key, entries[i].row);
  }
}

}  // namespace paddle::tables
