#pragma once
// 64-bit keys, numbered from 0 in the order in which they are added.

#include <cstdint>
#include <span>
#include <vector>

#include "tensor/random.h"

namespace paddle::train {

/// A hash table with open addressing and linear probing.
class KeyIndex {
 public:
  int64_t size() const { return static_cast<int64_t>(keys_.size()); }
  /// By number.
  std::span<const uint64_t> keys() const { return keys_; }
  /// The number of a key; -1 if it was not added.
  int64_t find(uint64_t key) const { return cells_.empty() ? -1 : cells_[cell_of(key)]; }
  /// The number of a key, which is added if it is new.
  int64_t add(uint64_t key) {
    if (2 * (keys_.size() + 1) > cells_.size()) grow();
    int64_t& number = cells_[cell_of(key)];
    if (number < 0) {
      number = size();
      keys_.push_back(key);
    }
    return number;
  }
  void clear() {
    keys_.clear();
    cells_.clear();
  }

 private:
  /// The cell of a key, or the free one where it belongs.
  size_t cell_of(uint64_t key) const {
    const size_t mask = cells_.size() - 1;
    size_t at = mix64(key) & mask;
    while (cells_[at] >= 0 && keys_[static_cast<size_t>(cells_[at])] != key) at = (at + 1) & mask;
    return at;
  }
  void grow() {
    const size_t cells = cells_.empty() ? 64 : 2 * cells_.size();
    cells_.assign(cells, -1);
    for (size_t i = 0; i < keys_.size(); ++i) cells_[cell_of(keys_[i])] = static_cast<int64_t>(i);
  }

  std::vector<uint64_t> keys_;
  std::vector<int64_t> cells_;  ///< numbers of keys, -1 if free; a power of two, at most half full
};

}  // namespace paddle::train
