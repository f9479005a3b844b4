#pragma once
// Rows by 64-bit keys in the memory of this process: the storage of a table, or of the part of it
// that this process owns.
//
// A record has the key, a link, the weights of the row, then each of its states, and further bytes.
// Records of a shard are stored in pages, none of which is ever moved. The index of a shard is a
// linear hash table: it grows by one bucket at a time, so no insertion waits for a rebuild.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "tables/shards.h"
#include "tensor/dtype.h"

namespace paddle::tables {

class RecordTable {
 public:
  /// Rows of `width` elements, float32 or float64, `states` further ones of the same shape, and
  /// then `further` bytes.
  RecordTable(DType dtype, int64_t width, int64_t states, size_t further = 0);

  int64_t width() const { return width_; }
  DType dtype() const { return dtype_; }
  /// Bytes of the weights of a row, and of each of its states.
  size_t row_bytes() const { return row_bytes_; }
  size_t record_bytes() const { return record_bytes_; }
  /// Where the further bytes of a row are, from its weights on.
  size_t further_at() const { return further_at_; }
  int64_t count() const { return count_; }
  int64_t count(int shard) const { return at(shard).count; }
  /// Bytes of memory: pages, and the index.
  uint64_t bytes() const;

  /// The weights of a row, which its states follow; null if the key is absent.
  std::byte* find(uint64_t key) const { return find(key, hash_of(key)); }
  /// The same of many keys, with the memory of the next ones on its way.
  void find(std::span<const uint64_t> keys, std::span<std::byte*> rows) const;
  /// Adds a row, whose memory is not initialized. The key must be absent.
  std::byte* insert(uint64_t key);
  /// Sizes the index of an empty shard for a number of rows, so that adding them divides no bucket.
  void reserve(int shard, uint32_t rows);
  /// Removes the row of a key; false if there is none. Another row may move to its place.
  bool erase(uint64_t key);
  /// Removes the rows of a shard for which `is_removed(key, row)`; gives how many. The others may
  /// move.
  template <class IsRemoved>
  int64_t erase_if(int shard, const IsRemoved& is_removed) {
    int64_t removed = 0;
    for (uint32_t number = at(shard).count; number-- > 0;) {
      std::byte* const record = record_of(at(shard), number);
      if (!is_removed(key_of(record), record + header_bytes_)) continue;
      erase(at(shard), number);
      ++removed;
    }
    return removed;
  }
  void clear();

  /// Calls `use(key, row)` for the rows of a shard in any order.
  template <class Use>
  void for_each(int shard, const Use& use) const {
    for (uint32_t number = 0; number < at(shard).count; ++number) {
      const std::byte* const record = record_of(at(shard), number);
      use(key_of(record), record + header_bytes_);
    }
  }
  /// The same by rising keys; see `ordered`.
  template <class Use>
  void for_each_sorted(int shard, bool is_signed, const Use& use) const {
    for (const uint32_t number : sorted(shard, is_signed)) {
      std::byte* const record = record_of(at(shard), number);
      use(key_of(record), record + header_bytes_);
    }
  }

 private:
  static constexpr uint32_t kNone = 0xffffffff;
  struct Shard {
    std::vector<std::unique_ptr<std::byte[]>> pages;
    std::vector<uint32_t> heads;  ///< of the chains of records, by bucket
    uint32_t count = 0;
  };
  /// Where a record is: its page, and its place there.
  struct Place {
    size_t page;
    uint32_t at;
  };

  Shard& at(int shard) { return shards_[static_cast<size_t>(shard)]; }
  const Shard& at(int shard) const { return shards_[static_cast<size_t>(shard)]; }
  std::byte* find(uint64_t key, uint64_t hash) const;
  /// The rows of a few keys.
  void find_some(std::span<const uint64_t> keys, std::span<std::byte*> rows) const;
  std::vector<uint32_t> sorted(int shard, bool is_signed) const;
  Place place_of(uint32_t number) const;
  uint32_t page_records(size_t page) const;
  std::byte* record_of(const Shard& shard, uint32_t number) const {
    const Place place = place_of(number);
    return shard.pages[place.page].get() + place.at * record_bytes_;
  }
  static size_t bucket_of(uint64_t hash, size_t buckets);
  static uint64_t key_of(const std::byte* record);
  static uint32_t next_of(const std::byte* record);
  static void set_next(std::byte* record, uint32_t number);
  void add_bucket(Shard& shard);
  /// Removes a record; the last one of the shard takes its number.
  void erase(Shard& shard, uint32_t number);
  /// Lets the link that leads to record `number`, of this key, lead to another one.
  void relink(Shard& shard, uint64_t key, uint32_t number, uint32_t to);

  DType dtype_;
  int64_t width_;
  size_t row_bytes_, header_bytes_, further_at_, record_bytes_;
  uint32_t first_log_, last_level_;  ///< sizes of pages, see `place_of`
  int64_t count_ = 0;
  std::vector<Shard> shards_;
};

}  // namespace paddle::tables
