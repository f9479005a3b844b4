#include "program/memory_table.h"

#include <algorithm>
#include <cstring>
#include <iterator>
#include <utility>

#include "base/parallel.h"

namespace paddle::program {
namespace {

constexpr int64_t kReadGrain = 1024;

}  // namespace

MemoryTable::MemoryTable(TableSpec spec, std::shared_ptr<const optim::Optimizer> rule,
                         uint64_t seed)
    : rules_(std::move(spec), std::move(rule), seed),
      records_(rules_.spec().dtype, rules_.spec().width, static_cast<int64_t>(rules_.states()),
               rules_.column_bytes() + (rules_.spec().tracks_changes ? sizeof mark_ : 0)),
      waiting_(DType::kF32, tables::kWaitingWidth, 0) {}

uint64_t MemoryTable::payload_bytes() const { return sizeof(uint64_t) + rules_.record_bytes(); }

void MemoryTable::read(std::span<const uint64_t> keys, MissingRow missing, std::byte* rows) const {
  std::vector<std::byte*> found(keys.size());
  records_.find(keys, found);
  const size_t bytes = records_.row_bytes();
  parallel_for(static_cast<int64_t>(keys.size()), kReadGrain, [&](int64_t begin, int64_t end) {
    std::vector<double> values;
    for (auto i = static_cast<size_t>(begin); i < static_cast<size_t>(end); ++i) {
      std::byte* const to = rows + i * bytes;
      if (found[i] && !is_gone(keys[i], found[i]))
        std::memcpy(to, found[i], bytes);
      else if (missing == MissingRow::kInitial && !policy().waits())
        rules_.begin_row(keys[i], to, values);
      else
        std::memset(to, 0, bytes);
    }
  });
}

void MemoryTable::insert(std::span<const uint64_t> keys, const std::byte* rows) {
  if (policy().waits()) return;
  drop_gone(keys);
  std::vector<std::byte*> found(keys.size());
  records_.find(keys, found);
  std::vector<double> values;
  for (size_t i = 0; i < keys.size(); ++i) {
    if (found[i] || records_.find(keys[i])) continue;  // a key may come twice
    if (rows) {
      std::byte* const row = records_.insert(keys[i]);
      std::memcpy(row, rows + i * records_.row_bytes(), records_.row_bytes());
      begin_further(row);
    } else {
      add_row(keys[i], values);
    }
  }
}

void MemoryTable::update(std::span<const uint64_t> keys, const Array& gradients,
                         const RowUpdate& inputs) {
  if (keys.empty()) return;
  drop_gone(keys);
  std::vector<std::byte*> rows(keys.size());
  records_.find(keys, rows);
  if (policy().waits()) {
    const size_t bytes = records_.row_bytes();
    const auto* const given = static_cast<const std::byte*>(gradients.raw());
    std::vector<std::byte*> some;
    std::vector<std::byte> of_some;
    for (size_t i = 0; i < rows.size(); ++i) {
      if (!rows[i]) continue;
      some.push_back(rows[i]);
      of_some.insert(of_some.end(), given + i * bytes, given + (i + 1) * bytes);
    }
    if (!some.empty()) rules_.update(some, of_some.data(), inputs);
    for (std::byte* row : some) mark(row);
    return;
  }
  std::vector<double> values;
  for (size_t i = 0; i < keys.size(); ++i)
    if (!rows[i]) rows[i] = add_row(keys[i], values);
  rules_.update(rows, gradients.raw(), inputs);
  for (std::byte* row : rows) mark(row);
}

void MemoryTable::set_rows(std::span<const uint64_t> keys, const std::byte* rows) {
  insert(keys, rows);
  std::vector<std::byte*> found(keys.size());
  records_.find(keys, found);
  const size_t bytes = records_.row_bytes();
  for (size_t i = 0; i < keys.size(); ++i) {
    std::memcpy(found[i], rows + i * bytes, bytes);
    mark(found[i]);
  }
}

namespace {

template <class T>
void add_scaled(std::span<std::byte* const> rows, const T* changes, int64_t width, T factor) {
  for (std::byte* const row : rows) {
    T* const to = reinterpret_cast<T*>(row);
    for (int64_t k = 0; k < width; ++k) to[k] += factor * *changes++;
  }
}

}  // namespace

void MemoryTable::add_changes(std::span<const uint64_t> keys, const Array& changes, double factor) {
  insert(keys);
  std::vector<std::byte*> found(keys.size());
  records_.find(keys, found);
  if (spec().dtype == DType::kF64)
    add_scaled(found, changes.data<double>(), spec().width, factor);
  else
    add_scaled(found, changes.data<float>(), spec().width, static_cast<float>(factor));
  for (std::byte* row : found) mark(row);
}

void MemoryTable::mark(std::byte* row) const {
  if (tracks_changes())
    std::memcpy(row + records_.further_at() + rules_.column_bytes(), &mark_, sizeof mark_);
}

bool MemoryTable::is_changed(const std::byte* row) const {
  uint32_t last = 0;
  std::memcpy(&last, row + records_.further_at() + rules_.column_bytes(), sizeof last);
  return last == mark_;
}

void MemoryTable::begin_changes() {
  ++mark_;
  deleted_.clear();
}

std::string MemoryTable::write_changes(const std::string& folder, std::pair<int, int> shards,
                                       int64_t step) const {
  tables::RecordTable changed(spec().dtype, spec().width, static_cast<int64_t>(rules_.states()),
                              rules_.column_bytes());
  for (int shard = shards.first; shard < shards.second; ++shard)
    records_.for_each(shard, [&](uint64_t key, const std::byte* row) {
      if (is_changed(row))
        std::memcpy(changed.insert(key), row, records_.further_at() + rules_.column_bytes());
    });
  std::vector<uint64_t> deleted;
  std::copy_if(deleted_.begin(), deleted_.end(), std::back_inserter(deleted),
               [&](uint64_t key) { return !records_.find(key); });
  return tables::write_delta(folder, format(), changed, deleted, shards, step);
}

tables::RowStatistics MemoryTable::statistics_of(const std::byte* row) const {
  tables::RowStatistics out;
  std::memcpy(&out, row + records_.further_at(), sizeof out);
  return out;
}

void MemoryTable::set_statistics(std::byte* row, const tables::RowStatistics& statistics) const {
  std::memcpy(row + records_.further_at(), &statistics, sizeof statistics);
}

void MemoryTable::widen_if_due(uint64_t key, std::byte* row, std::vector<double>& scratch) const {
  if (policy().wide_columns == 0) return;
  const tables::RowStatistics now = statistics_of(row);
  if (policy().score(now.show, now.click) >= policy().wide_score) rules_.widen(key, row, scratch);
}

std::byte* MemoryTable::add_row(uint64_t key, std::vector<double>& scratch) {
  std::byte* const row = records_.insert(key);
  rules_.begin_row(key, row, scratch);
  begin_further(row);
  return row;
}

// A row that is added after the end of a day is not of that day, so the removal does not take it
// before its first use is counted.
void MemoryTable::begin_further(std::byte* row) const {
  rules_.begin_further(row);
  if (ended_) set_statistics(row, {.day = static_cast<float>(*ended_ + 1)});
  mark(row);
}

void MemoryTable::admit(uint64_t key, const tables::KeyUse& use, int64_t step, int64_t day,
                        std::vector<double>& scratch) {
  tables::Waiting known;
  known.day = static_cast<float>(day);
  std::byte* place = nullptr;
  if (policy().counts_waiting() && (place = waiting_.find(key)))
    std::memcpy(&known, place, sizeof known);
  if (place && is_gone(key, known)) {
    known = {};
    known.day = static_cast<float>(day);
    ++dropped_.waiting;
  }
  bool is_admitted = policy().use(known, use, day);
  if (is_admitted && policy().entry_chance)
    is_admitted = rules_.chance(key, step) < *policy().entry_chance;
  if (!is_admitted) {
    if (!policy().counts_waiting()) return;
    if (!place) place = waiting_.insert(key);
    std::memcpy(place, &known, sizeof known);
    return;
  }
  if (place) waiting_.erase(key);
  std::byte* const row = add_row(key, scratch);
  if (policy().keeps_statistics()) set_statistics(row, {known.show, known.click, known.day});
  widen_if_due(key, row, scratch);
}

void MemoryTable::observe(std::span<const uint64_t> keys, std::span<const tables::KeyUse> uses,
                          int64_t step, int64_t day) {
  if (policy().waits()) drop_gone(keys);
  std::vector<std::byte*> rows(keys.size());
  records_.find(keys, rows);
  // Rows that are added do not move others.
  std::vector<double> scratch;
  for (size_t i = 0; i < keys.size(); ++i) {
    if (rows[i] && policy().keeps_statistics()) {
      tables::RowStatistics statistics = statistics_of(rows[i]);
      policy().use(statistics, uses[i], day);
      set_statistics(rows[i], statistics);
      mark(rows[i]);
      widen_if_due(keys[i], rows[i], scratch);
    } else if (!rows[i] && uses[i].count > 0) {
      admit(keys[i], uses[i], step, day, scratch);
    }
  }
}

void MemoryTable::begin_removal(int64_t ended, std::pair<int, int> shards) {
  ensure(!ended_, "table '", spec().path, "': a removal is not over");
  if (!policy().removes()) return;
  ended_ = ended;
  unswept_ = shards;
  // Which rows of a shard have the highest scores is found by looking at all of them.
  if (policy().max_rows == 0) return;
  const Removed all = sweep(tables::kShards);
  dropped_.rows += all.rows;
  dropped_.waiting += all.waiting;
}

// A use after the end of the day has a later day, and such a row stays.
bool MemoryTable::is_gone(uint64_t key, const std::byte* row) const {
  if (!ended_) return false;
  const int shard = tables::shard_of(key);
  if (shard < unswept_.first || shard >= unswept_.second) return false;
  const tables::RowStatistics of = statistics_of(row);
  return of.day <= static_cast<float>(*ended_) && policy().is_removed(of, *ended_);
}

bool MemoryTable::is_gone(uint64_t key, const tables::Waiting& waiting) const {
  if (!ended_ || policy().unseen_days == 0) return false;
  const int shard = tables::shard_of(key);
  return shard >= unswept_.first && shard < unswept_.second &&
         *ended_ - static_cast<int64_t>(waiting.day) >= policy().unseen_days;
}

void MemoryTable::drop_gone(std::span<const uint64_t> keys) {
  if (!ended_) return;
  for (const uint64_t key : keys) {
    const std::byte* const row = records_.find(key);
    if (!row || !is_gone(key, row)) continue;
    records_.erase(key);
    if (tracks_changes()) deleted_.push_back(key);
    ++dropped_.rows;
  }
}

RowTable::Removed MemoryTable::sweep(int shards) {
  Removed out = std::exchange(dropped_, {});
  if (!ended_) return out;
  const int64_t of_shard = (policy().max_rows + tables::kShards - 1) / tables::kShards;
  for (; shards > 0 && unswept_.first < unswept_.second; --shards) {
    const int shard = unswept_.first;
    out.rows += records_.erase_if(shard, [&](uint64_t key, const std::byte* row) {
      const bool is_removed = is_gone(key, row);
      if (is_removed && tracks_changes()) deleted_.push_back(key);
      return is_removed;
    });
    out.waiting += waiting_.erase_if(shard, [&](uint64_t key, const std::byte* row) {
      tables::Waiting waiting;
      std::memcpy(&waiting, row, sizeof waiting);
      return is_gone(key, waiting);
    });
    if (policy().max_rows > 0 && records_.count(shard) > of_shard)
      out.rows += keep_best(shard, of_shard, *ended_);
    ++unswept_.first;
  }
  if (unswept_.first == unswept_.second) ended_.reset();
  return out;
}

int64_t MemoryTable::keep_best(int shard, int64_t rows, int64_t ended) {
  // Of equal scores, lower keys stay.
  std::vector<std::pair<double, uint64_t>> order;
  const bool is_signed = spec().key == DType::kI64;
  records_.for_each_sorted(shard, is_signed, [&](uint64_t key, const std::byte* row) {
    const tables::RowStatistics then = policy().on_day(statistics_of(row), ended + 1);
    order.emplace_back(-policy().score(then.show, then.click), key);
  });
  std::stable_sort(order.begin(), order.end(),
                   [](const auto& a, const auto& b) { return a.first < b.first; });
  for (size_t i = static_cast<size_t>(rows); i < order.size(); ++i) {
    records_.erase(order[i].second);
    if (tracks_changes()) deleted_.push_back(order[i].second);
  }
  return static_cast<int64_t>(order.size()) - rows;
}

TableContent MemoryTable::waiting() const {
  TableContent out;
  const int64_t count = waiting_.count();
  out.keys = Array::empty(spec().key, {count});
  out.weight = Array::empty(DType::kF32, {count, tables::kWaitingWidth});
  std::vector<std::pair<uint64_t, const std::byte*>> all;
  const bool is_signed = spec().key == DType::kI64;
  for (int shard = 0; shard < tables::kShards; ++shard)
    waiting_.for_each_sorted(shard, is_signed, [&](uint64_t key, const std::byte* row) {
      all.emplace_back(tables::ordered(key, is_signed), row);
    });
  std::sort(all.begin(), all.end());
  const size_t bytes = waiting_.row_bytes();
  for (size_t i = 0; i < all.size(); ++i) {
    static_cast<uint64_t*>(out.keys.raw())[i] = tables::ordered(all[i].first, is_signed);
    std::memcpy(static_cast<std::byte*>(out.weight.raw()) + i * bytes, all[i].second, bytes);
  }
  return out;
}

void MemoryTable::add_waiting(const TableContent& content, std::pair<int, int> shards) {
  const Array keys = content.keys.on_host().contiguous(),
              values = content.weight.on_host().contiguous();
  const size_t bytes = waiting_.row_bytes();
  for (int64_t i = 0; i < keys.size(); ++i) {
    const uint64_t key = static_cast<const uint64_t*>(keys.raw())[i];
    const int shard = tables::shard_of(key);
    if (shard < shards.first || shard >= shards.second) continue;
    std::memcpy(waiting_.insert(key),
                static_cast<const std::byte*>(values.raw()) + static_cast<size_t>(i) * bytes,
                bytes);
  }
}

std::string MemoryTable::write_waiting(const std::string& folder, std::pair<int, int> shards,
                                       int64_t step) const {
  return tables::write_segments(folder, waiting_format(spec()), waiting_, shards, step);
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
  waiting_.clear();
  deleted_.clear();
  ended_.reset();
  dropped_ = {};
}

void MemoryTable::add(const TableContent& content, std::pair<int, int> shards) {
  rules_.for_each(content, shards, [&](uint64_t key, const std::function<void(std::byte*)>& fill) {
    std::byte* const row = records_.insert(key);
    fill(row);
    mark(row);
  });
}

namespace {

/// The numbers of a state, before its records.
struct StateHeader {
  uint64_t seed = 0, record_bytes = 0, deleted = 0;
  int64_t ended = 0, dropped_rows = 0, dropped_waiting = 0;
  int32_t first_unswept = 0, last_unswept = 0;
  uint32_t mark = 0, is_ending = 0;
};

template <class T>
std::span<const std::byte> bytes_of(const T& value) {
  return std::as_bytes(std::span(&value, 1));
}

// The number of rows of each shard, and then their keys and bytes.
void write_records(const tables::RecordTable& records, size_t bytes,
                   const RowTable::StateSink& sink) {
  for (int shard = 0; shard < tables::kShards; ++shard) {
    sink(bytes_of(static_cast<uint32_t>(records.count(shard))));
    records.for_each(shard, [&](uint64_t key, const std::byte* row) {
      sink(bytes_of(key));
      sink({row, bytes});
    });
  }
}

void read_records(tables::RecordTable& records, size_t bytes, const RowTable::StateSource& source,
                  const std::string& path) {
  constexpr size_t kRead = size_t{64} << 10;
  const size_t whole = sizeof(uint64_t) + bytes, most = std::max<size_t>(1, kRead / whole);
  std::vector<std::byte> some;
  for (int shard = 0; shard < tables::kShards; ++shard) {
    uint32_t left = 0;
    source(std::as_writable_bytes(std::span(&left, 1)));
    constexpr uint32_t kMaxReserved = 1 << 20;  // more of a damaged file would not be there
    if (left > 0) records.reserve(shard, std::min(left, kMaxReserved));
    while (left > 0) {
      const size_t count = std::min<size_t>(left, most);
      some.resize(count * whole);
      source(some);
      for (const std::byte* at = some.data(); at != some.data() + some.size(); at += whole) {
        uint64_t key = 0;
        std::memcpy(&key, at, sizeof key);
        if (tables::shard_of(key) != shard)
          fail(ErrorCode::kModel, "table '", path, "': its state has a key of another shard");
        std::memcpy(records.insert(key), at + sizeof key, bytes);
      }
      left -= static_cast<uint32_t>(count);
    }
  }
}

}  // namespace

void MemoryTable::write_state(const StateSink& sink) const {
  StateHeader header;
  header.seed = rules_.seed();
  header.record_bytes = state_bytes();
  header.deleted = deleted_.size();
  header.ended = ended_.value_or(0);
  header.is_ending = ended_ ? 1 : 0;
  header.dropped_rows = dropped_.rows;
  header.dropped_waiting = dropped_.waiting;
  header.first_unswept = unswept_.first;
  header.last_unswept = unswept_.second;
  header.mark = mark_;
  sink(bytes_of(header));
  sink(std::as_bytes(std::span(deleted_)));
  write_records(records_, state_bytes(), sink);
  write_records(waiting_, waiting_.row_bytes(), sink);
}

void MemoryTable::read_state(const StateSource& source) {
  StateHeader header;
  source(std::as_writable_bytes(std::span(&header, 1)));
  if (header.record_bytes != state_bytes())
    fail(ErrorCode::kModel, "table '", spec().path, "': its state is of another table");
  clear(header.seed);
  mark_ = header.mark;
  if (header.is_ending) ended_ = header.ended;
  unswept_ = {header.first_unswept, header.last_unswept};
  dropped_ = {header.dropped_rows, header.dropped_waiting};
  for (uint64_t i = 0; i < header.deleted; ++i)
    source(std::as_writable_bytes(std::span(&deleted_.emplace_back(), 1)));
  read_records(records_, state_bytes(), source, spec().path);
  read_records(waiting_, waiting_.row_bytes(), source, spec().path);
}

void RowTable::write_state(const StateSink&) const {}
void RowTable::read_state(const StateSource&) {}
void RowTable::set_rows(std::span<const uint64_t>, const std::byte*) {
  fail(ErrorCode::kInternal, "table '", spec().path, "': rows cannot be set");
}
void RowTable::add_changes(std::span<const uint64_t>, const Array&, double) {
  fail(ErrorCode::kInternal, "table '", spec().path, "': changes cannot be added");
}
void RowTable::observe(std::span<const uint64_t>, std::span<const tables::KeyUse>, int64_t,
                       int64_t) {}
void RowTable::begin_removal(int64_t, std::pair<int, int>) {}
RowTable::Removed RowTable::sweep(int) { return {}; }
TableContent RowTable::waiting() const { return {}; }
void RowTable::add_waiting(const TableContent&, std::pair<int, int>) {}
std::string RowTable::write_changes(const std::string&, std::pair<int, int>, int64_t) const {
  return "";
}
std::string RowTable::write_waiting(const std::string&, std::pair<int, int>, int64_t) const {
  return "";
}

TableSpec waiting_spec(TableSpec spec) {
  spec.dtype = DType::kF32;
  spec.width = tables::kWaitingWidth;
  return spec;
}

tables::TableFormat waiting_format(const TableSpec& spec) {
  const TableSpec waiting = waiting_spec(spec);
  return {.name = waiting.path,
          .key = waiting.key,
          .dtype = waiting.dtype,
          .width = waiting.width,
          .states = {}};
}

Registry<TableKind>& table_kinds() {
  static Registry<TableKind> kinds(
      "kind of table", {{"memory", "in the memory of the ranks",
                         [](TableSpec spec, std::shared_ptr<const optim::Optimizer> rule,
                            uint64_t seed, const KindOptions&) {
                           return std::make_unique<MemoryTable>(std::move(spec), std::move(rule),
                                                                seed);
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
  for (const auto& [name, values] : content.states) check(str(weight, "/", name), values);
  for (const auto& [name, values] : content.statistics)
    if (values.dtype != DType::kF32 || values.shape != Dims{content.keys.shape[0]})
      fail(ErrorCode::kModel, place, ": '", weight, "/", name, "' is ", described(values),
           ", expected one float32 for each key");
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
