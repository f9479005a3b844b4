#pragma once
// Long permutations from tables: a round of the Feistel network (tensor/random.h) adds a number
// that depends on one side of the grid only, which has about sqrt(n) values.

#include <cstddef>
#include <cstdint>

#include "tensor/random.h"

namespace paddle::cpu {

class PermutationTables {
 public:
  /// Bytes of the tables of permutations of n elements; 0 if n is too small or too large for them.
  static size_t bytes(uint64_t n);
  /// Fills the tables in `memory`, which must last as long as this.
  PermutationTables(const Permutation& order, void* memory);
  /// Elements `first`, `first` + 1, …: the bits of Permutation.
  void elements(uint64_t first, int64_t count, int64_t* out) const;

 private:
  Permutation order_;
  const uint32_t* tables_;
};

}  // namespace paddle::cpu
