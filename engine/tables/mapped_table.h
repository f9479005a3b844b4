#pragma once
// A table in files that is only read, by inference: the files are mapped and searched, so that
// opening a table copies no rows and processes share its memory. Reading is safe for any number of
// threads.

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "tables/segments.h"
#include "tensor/tensor.h"

namespace paddle::tables {

/// The statistic of int8 rows: each value of a row is its integer times this.
inline constexpr const char* kRowScale = "scale";

class MappedTable {
 public:
  /// A folder with segments: base and deltas. kModel if the manifest is damaged or a file lacks
  /// what it lists. Checksums and the order of keys are not checked.
  static std::shared_ptr<const MappedTable> open(const std::string& folder);
  /// A whole table by rising keys: `keys` int64 or uint64 [n], `weight` [n, width] of a float type.
  MappedTable(std::string name, Array keys, Array weight);

  const TableFormat& format() const { return format_; }
  bool is_signed() const { return format_.key == DType::kI64; }
  /// Rows of base and deltas; those that a delta replaces or removes are counted as well.
  int64_t stored_rows() const { return stored_rows_; }
  /// Bytes of their keys and values.
  uint64_t bytes() const;

  /// The rows of these keys, one after another, as float32 or float64; zeros for absent keys.
  void read(std::span<const uint64_t> keys, DType dtype, std::byte* rows) const;
  /// Where the values of a row are, in the type of the format, and the scale of int8 rows (else 1);
  /// null: absent.
  struct Row {
    const std::byte* values = nullptr;
    float scale = 1;
  };
  void find(std::span<const uint64_t> keys, Row* rows) const;
  /// Calls `use(key, row)` for each row, by shard and key or, of a whole table, by rising keys.
  void for_each(const std::function<void(uint64_t key, const Row& row)>& use) const;
  /// The same by rising keys, with memory for all keys.
  void for_each_sorted(const std::function<void(uint64_t key, const Row& row)>& use) const;
  /// The number of rows; reads all keys where there are deltas.
  int64_t count_rows() const;
  /// Writes a row that was found as float32 or float64.
  void put_row(const Row& row, DType dtype, std::byte* to) const;
  /// All rows by rising keys, in memory: `keys`, and `weight` as float32 or float64.
  TableContent sorted_content() const;

 private:
  /// Keys in rising order.
  struct Sorted {
    const uint64_t* keys = nullptr;
    int64_t count = 0;
  };
  struct Piece {
    Sorted present, deleted;
    const std::byte* rows = nullptr;
    const float* scales = nullptr;
  };
  /// Of a save: a piece for each shard, or one for all keys.
  using Layer = std::vector<Piece>;
  struct Group;

  MappedTable() = default;
  void add_file(const SegmentFile& file, bool is_delta, Layer& layer);
  const Piece& piece_of(const Layer& layer, uint64_t key) const;
  void search(Group& group, const Layer& layer, bool deleted) const;
  void find_group(std::span<const uint64_t> keys, Row* rows) const;

  TableFormat format_;
  std::vector<Layer> layers_;   ///< the newest first
  std::vector<Array> storage_;  ///< the memory of the pieces
  int64_t stored_rows_ = 0;
  size_t row_bytes_ = 0;
};

}  // namespace paddle::tables
