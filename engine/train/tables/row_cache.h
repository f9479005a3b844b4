#pragma once
// Rows of servers that a worker uses for several of its steps, so that it asks for hot keys less
// often.

#include <cstddef>
#include <cstdint>
#include <vector>

#include "train/tables/key_index.h"

namespace paddle::train {

/// Its content is a function of the calls: without a clock, without random numbers.
class RowCache {
 public:
  /// `bytes`: of memory at most. `refresh`: the steps for which a row is used.
  RowCache(size_t row_bytes, uint64_t bytes, int refresh);
  /// The row of a key in a step; null if it has to be asked for. Valid until the next `put`.
  const std::byte* find(uint64_t key, int64_t step) const;
  /// Keeps a row that was asked for in this step. Rows that were put long ago make room.
  void put(uint64_t key, const std::byte* row, int64_t step);
  void clear();

 private:
  /// When the young one is full it becomes the old one.
  struct Generation {
    KeyIndex keys;
    std::vector<int64_t> steps;
    std::vector<std::byte> rows;
  };
  const std::byte* find(const Generation& from, uint64_t key, int64_t step) const;

  size_t row_bytes_;
  int64_t capacity_;  ///< of a generation, in rows
  int refresh_;
  Generation young_, old_;
};

}  // namespace paddle::train
