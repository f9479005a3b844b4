#include "program/memory_table.h"

#include <cstring>

#include "base/parallel.h"

namespace paddle::program {
namespace {

constexpr int64_t kReadGrain = 1024;

}  // namespace

MemoryTable::MemoryTable(TableSpec spec, std::shared_ptr<const optim::Optimizer> rule,
                         uint64_t seed)
    : rules_(std::move(spec), std::move(rule), seed),
      records_(rules_.spec().dtype, rules_.spec().width, static_cast<int64_t>(rules_.states())) {}

uint64_t MemoryTable::payload_bytes() const { return sizeof(uint64_t) + rules_.record_bytes(); }

void MemoryTable::read(std::span<const uint64_t> keys, MissingRow missing, std::byte* rows) const {
  std::vector<std::byte*> found(keys.size());
  records_.find(keys, found);
  const size_t bytes = records_.row_bytes();
  parallel_for(static_cast<int64_t>(keys.size()), kReadGrain, [&](int64_t begin, int64_t end) {
    std::vector<double> values;
    for (auto i = static_cast<size_t>(begin); i < static_cast<size_t>(end); ++i) {
      std::byte* const to = rows + i * bytes;
      if (found[i])
        std::memcpy(to, found[i], bytes);
      else if (missing == MissingRow::kInitial)
        rules_.begin_row(keys[i], to, values);
      else
        std::memset(to, 0, bytes);
    }
  });
}

void MemoryTable::insert(std::span<const uint64_t> keys, const std::byte* rows) {
  std::vector<std::byte*> found(keys.size());
  records_.find(keys, found);
  std::vector<double> values;
  for (size_t i = 0; i < keys.size(); ++i) {
    if (found[i] || records_.find(keys[i])) continue;  // a key may come twice
    std::byte* const row = records_.insert(keys[i]);
    if (rows)
      std::memcpy(row, rows + i * records_.row_bytes(), records_.row_bytes());
    else
      rules_.begin_row(keys[i], row, values);
    rules_.begin_states(row);
  }
}

void MemoryTable::update(std::span<const uint64_t> keys, const Array& gradients,
                         const RowUpdate& inputs) {
  if (keys.empty()) return;
  std::vector<std::byte*> rows(keys.size());
  records_.find(keys, rows);
  for (const std::byte* row : rows)
    ensure(row != nullptr, "table '", spec().path, "': an update of a key without a row");
  rules_.update(rows, gradients.raw(), inputs);
}

TableContent MemoryTable::content(bool states) const {
  std::vector<RowRecords::Found> all;
  all.reserve(static_cast<size_t>(count()));
  for (int shard = 0; shard < tables::kShards; ++shard)
    records_.for_each_sorted(shard, spec().key == DType::kI64,
                             [&](uint64_t key, const std::byte* row) {
                               all.push_back({key, row});
                             });
  return rules_.content(std::move(all), states);
}

std::string MemoryTable::write(const std::string& folder, std::pair<int, int> shards,
                               int64_t step) const {
  return tables::write_segments(folder, format(), records_, shards, step);
}

void MemoryTable::clear(uint64_t seed) {
  rules_.set_seed(seed);
  records_.clear();
}

void MemoryTable::add(const TableContent& content, std::pair<int, int> shards) {
  rules_.for_each(content, shards, [&](uint64_t key, const std::function<void(std::byte*)>& fill) {
    fill(records_.insert(key));
  });
}

Registry<TableKind>& table_kinds() {
  static Registry<TableKind> kinds(
      "kind of table",
      {{"memory", "in the memory of the ranks",
        [](TableSpec spec, std::shared_ptr<const optim::Optimizer> rule, uint64_t seed) {
          return std::make_unique<MemoryTable>(std::move(spec), std::move(rule), seed);
        }}});
  return kinds;
}

void check_content(const TableSpec& spec, const TableContent& content, const std::string& place) {
  const std::string keys = table_keys(spec.path), weight = table_weight(spec.path);
  const auto described = [](const Array& array) { return text(array.dtype) + str(array.shape); };
  if (content.keys.dtype != spec.key || content.keys.shape.size() != 1)
    fail(ErrorCode::kModel, place, ": '", keys, "' is ", described(content.keys), ", expected ",
         text(spec.key), " [n]");
  const Dims shape = {content.keys.shape[0], spec.width};
  const auto check = [&](const std::string& name, const Array& rows) {
    if (rows.dtype != spec.dtype || rows.shape != shape)
      fail(ErrorCode::kModel, place, ": '", name, "' is ", described(rows), ", the table needs ",
           text(spec.dtype), str(shape));
  };
  check(weight, content.weight);
  for (const auto& [name, values] : content.states) check(weight + "/" + name, values);
  const Array packed = content.keys.on_host().contiguous();
  const auto* const key = static_cast<const uint64_t*>(packed.raw());
  const bool is_signed = spec.key == DType::kI64;
  const auto shown = [&](uint64_t bits) {
    return is_signed ? std::to_string(static_cast<int64_t>(bits)) : std::to_string(bits);
  };
  for (int64_t i = 1; i < packed.size(); ++i)
    if (tables::ordered(key[i], is_signed) <= tables::ordered(key[i - 1], is_signed))
      fail(ErrorCode::kModel, place, ": '", keys, "' has ", shown(key[i]), " after ",
           shown(key[i - 1]), "; expected distinct keys in rising order");
}

}  // namespace paddle::program
