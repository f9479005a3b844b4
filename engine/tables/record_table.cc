#include "tables/record_table.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <utility>

#include "base/error.h"
#include "base/parallel.h"

namespace paddle::tables {
namespace {

constexpr size_t kKeyBytes = sizeof(uint64_t), kLinkBytes = sizeof(uint32_t);
constexpr size_t kFirstPage = 512, kLastPage = size_t{128} << 10;
constexpr uint32_t kPagesOfLevel = 16;
constexpr size_t kAhead = 32;  ///< keys whose memory is prefetched together
constexpr int64_t kFindGrain = 2048;

size_t align_up(size_t bytes, size_t to) { return (bytes + to - 1) / to * to; }

}  // namespace

RecordTable::RecordTable(DType dtype, int64_t width, int64_t states, size_t further)
    : dtype_(dtype),
      width_(width),
      row_bytes_(static_cast<size_t>(storage_bytes(dtype, width))),
      header_bytes_(align_up(kKeyBytes + kLinkBytes, static_cast<size_t>(item_size(dtype)))),
      further_at_(row_bytes_ * static_cast<size_t>(1 + states)),
      record_bytes_(header_bytes_ + further_at_ +
                    align_up(further, static_cast<size_t>(item_size(dtype)))),
      shards_(kShards) {
  const auto log_of = [this](size_t page) {
    return static_cast<uint32_t>(std::bit_width(std::max<size_t>(1, page / record_bytes_)) - 1);
  };
  first_log_ = log_of(kFirstPage);
  last_level_ = 1 + log_of(kLastPage) - first_log_;
}

// A page is at most a sixteenth of its shard: of 16 pages of the first size, 16 more of that size,
// 16 of twice that, and so on up to the last size, which all further pages have.
RecordTable::Place RecordTable::place_of(uint32_t number) const {
  const uint32_t unit = number >> first_log_;
  uint32_t level = 0, before = 0;
  if (unit >= kPagesOfLevel) {
    level = std::min<uint32_t>(last_level_, static_cast<uint32_t>(std::bit_width(unit)) - 4);
    before = kPagesOfLevel << (level - 1);
  }
  const uint32_t log = first_log_ + (level > 0 ? level - 1 : 0);
  const uint32_t in_level = number - (before << first_log_);
  return {size_t{kPagesOfLevel} * level + (in_level >> log), in_level & ((1u << log) - 1)};
}

uint32_t RecordTable::page_records(size_t page) const {
  const auto level = std::min<size_t>(last_level_, page / kPagesOfLevel);
  return 1u << (first_log_ + static_cast<uint32_t>(level > 0 ? level - 1 : 0));
}

uint64_t RecordTable::key_of(const std::byte* record) {
  uint64_t key = 0;
  std::memcpy(&key, record, kKeyBytes);
  return key;
}
uint32_t RecordTable::next_of(const std::byte* record) {
  uint32_t number = 0;
  std::memcpy(&number, record + kKeyBytes, kLinkBytes);
  return number;
}
void RecordTable::set_next(std::byte* record, uint32_t number) {
  std::memcpy(record + kKeyBytes, &number, kLinkBytes);
}

size_t RecordTable::bucket_of(uint64_t hash, size_t buckets) {
  const size_t half = std::bit_floor(buckets);
  const size_t bucket = hash & (2 * half - 1);
  return bucket < buckets ? bucket : bucket & (half - 1);
}

std::byte* RecordTable::find(uint64_t key, uint64_t hash) const {
  const Shard& shard = at(shard_of_hash(hash));
  if (shard.heads.empty()) return nullptr;
  uint32_t number = shard.heads[bucket_of(hash, shard.heads.size())];
  while (number != kNone) {
    std::byte* const record = record_of(shard, number);
    if (key_of(record) == key) return record + header_bytes_;
    number = next_of(record);
  }
  return nullptr;
}

void RecordTable::find(std::span<const uint64_t> keys, std::span<std::byte*> rows) const {
  parallel_for(static_cast<int64_t>(keys.size()), kFindGrain, [&](int64_t begin, int64_t end) {
    for (auto first = static_cast<size_t>(begin); first < static_cast<size_t>(end);
         first += kAhead) {
      const size_t some = std::min(kAhead, static_cast<size_t>(end) - first);
      find_some(keys.subspan(first, some), rows.subspan(first, some));
    }
  });
}

// Each step of a lookup needs memory that is seldom in a cache: the bucket, the page, and the
// records of the chain. All keys take a step before any takes the next one.
void RecordTable::find_some(std::span<const uint64_t> keys, std::span<std::byte*> rows) const {
  struct Lookup {
    const Shard* shard;
    const uint32_t* head;
    uint32_t number;
    std::byte* record;
  };
  Lookup lookups[kAhead];
  uint32_t left[kAhead];
  size_t count = 0;
  for (size_t i = 0; i < keys.size(); ++i) {
    const uint64_t hash = hash_of(keys[i]);
    Lookup& of = lookups[i];
    of.shard = &at(shard_of_hash(hash));
    rows[i] = nullptr;
    if (of.shard->heads.empty()) continue;
    of.head = &of.shard->heads[bucket_of(hash, of.shard->heads.size())];
    __builtin_prefetch(of.head);
    left[count++] = static_cast<uint32_t>(i);
  }
  const auto keep = [&](size_t& kept, uint32_t i) {
    if (lookups[i].number == kNone) return;
    __builtin_prefetch(&lookups[i].shard->pages[place_of(lookups[i].number).page]);
    left[kept++] = i;
  };
  size_t kept = 0;
  for (size_t l = 0; l < count; ++l) {
    lookups[left[l]].number = *lookups[left[l]].head;
    keep(kept, left[l]);
  }
  constexpr size_t kLine = 64;
  for (count = std::exchange(kept, 0); count > 0; count = std::exchange(kept, 0)) {
    for (size_t l = 0; l < count; ++l) {
      Lookup& of = lookups[left[l]];
      of.record = record_of(*of.shard, of.number);
      __builtin_prefetch(of.record);
      __builtin_prefetch(of.record + kLine);
    }
    for (size_t l = 0; l < count; ++l) {
      const uint32_t i = left[l];
      Lookup& of = lookups[i];
      if (key_of(of.record) == keys[i]) {
        rows[i] = of.record + header_bytes_;
        continue;
      }
      of.number = next_of(of.record);
      keep(kept, i);
    }
  }
}

void RecordTable::add_bucket(Shard& shard) {
  const size_t buckets = shard.heads.size();
  if (buckets == shard.heads.capacity()) shard.heads.reserve(buckets + buckets / 8 + 4);
  shard.heads.push_back(kNone);
  if (buckets == 0) return;
  // The records of one bucket are divided between it and the new one.
  const size_t divided = buckets - std::bit_floor(buckets);
  uint32_t number = shard.heads[divided];
  shard.heads[divided] = kNone;
  while (number != kNone) {
    std::byte* const record = record_of(shard, number);
    const uint32_t next = next_of(record);
    uint32_t& head = shard.heads[bucket_of(hash_of(key_of(record)), buckets + 1)];
    set_next(record, head);
    head = number;
    number = next;
  }
}

std::byte* RecordTable::insert(uint64_t key) {
  const uint64_t hash = hash_of(key);
  Shard& shard = at(shard_of_hash(hash));
  ensure(shard.count < kNone - 1, "a shard of a table is full");
  const uint32_t number = shard.count;
  const Place place = place_of(number);
  if (place.page == shard.pages.size())
    shard.pages.push_back(
        std::make_unique_for_overwrite<std::byte[]>(page_records(place.page) * record_bytes_));
  // Three records for two buckets.
  if (2 * size_t{number} >= 3 * shard.heads.size()) add_bucket(shard);
  std::byte* const record = shard.pages[place.page].get() + place.at * record_bytes_;
  uint32_t& head = shard.heads[bucket_of(hash, shard.heads.size())];
  std::memcpy(record, &key, kKeyBytes);
  set_next(record, head);
  head = number;
  ++shard.count;
  ++count_;
  return record + header_bytes_;
}

void RecordTable::reserve(int shard, uint32_t rows) {
  ensure(at(shard).count == 0, "a shard with rows");
  at(shard).heads.assign(2 * size_t{rows} / 3 + 1, kNone);
}

void RecordTable::relink(Shard& shard, uint64_t key, uint32_t number, uint32_t to) {
  uint32_t& head = shard.heads[bucket_of(hash_of(key), shard.heads.size())];
  if (head == number) {
    head = to;
    return;
  }
  std::byte* record = record_of(shard, head);
  while (next_of(record) != number) record = record_of(shard, next_of(record));
  set_next(record, to);
}

void RecordTable::erase(Shard& shard, uint32_t number) {
  std::byte* const record = record_of(shard, number);
  relink(shard, key_of(record), number, next_of(record));
  const uint32_t last = shard.count - 1;
  if (last != number) {
    const std::byte* const moved = record_of(shard, last);
    relink(shard, key_of(moved), last, number);
    std::memcpy(record, moved, record_bytes_);
  }
  --shard.count;
  --count_;
  // Pages after the one that the next record goes to hold nothing.
  const size_t pages = shard.count == 0 ? 0 : place_of(shard.count - 1).page + 1;
  if (shard.pages.size() > pages + 1) shard.pages.resize(pages + 1);
}

bool RecordTable::erase(uint64_t key) {
  const uint64_t hash = hash_of(key);
  Shard& shard = at(shard_of_hash(hash));
  if (shard.heads.empty()) return false;
  uint32_t number = shard.heads[bucket_of(hash, shard.heads.size())];
  while (number != kNone && key_of(record_of(shard, number)) != key)
    number = next_of(record_of(shard, number));
  if (number == kNone) return false;
  erase(shard, number);
  return true;
}

void RecordTable::clear() {
  for (Shard& shard : shards_) shard = {};
  count_ = 0;
}

uint64_t RecordTable::bytes() const {
  uint64_t bytes = sizeof(Shard) * shards_.size();
  for (const Shard& shard : shards_) {
    bytes += shard.heads.capacity() * sizeof(uint32_t) +
             shard.pages.capacity() * sizeof(std::unique_ptr<std::byte[]>);
    for (size_t page = 0; page < shard.pages.size(); ++page)
      bytes += page_records(page) * record_bytes_;
  }
  return bytes;
}

std::vector<uint32_t> RecordTable::sorted(int shard, bool is_signed) const {
  const Shard& here = at(shard);
  std::vector<std::pair<uint64_t, uint32_t>> keys(here.count);
  for (uint32_t number = 0; number < here.count; ++number)
    keys[number] = {ordered(key_of(record_of(here, number)), is_signed), number};
  std::sort(keys.begin(), keys.end());
  std::vector<uint32_t> out(keys.size());
  for (size_t i = 0; i < keys.size(); ++i) out[i] = keys[i].second;
  return out;
}

}  // namespace paddle::tables
