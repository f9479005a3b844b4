#pragma once
// Vector loops of attention to cached keys and values (cached_attention.cc). Sums of a row are made
// in the same order whatever rows are computed with it.

#include <cstddef>
#include <cstdint>

#include "tensor/dtype.h"

namespace paddle::cpu {

constexpr int64_t kCachedRows = 4;  ///< rows that share the reads of keys and values

/// Scores of rows for blocks of 16 keys of one head.
struct CachedScores {
  const float* query[kCachedRows];
  int64_t rows, width;
  float scale;
  const std::byte* keys;  ///< of the first block, or of block 0 with `table`
  const int64_t* table;   ///< the numbers of the blocks, or null if they follow each other
  int64_t block_bytes;    ///< from block to block
  int64_t blocks;
  float* scores;  ///< [rows][pitch]
  int64_t pitch;
};

/// out[row] = the sum over keys of weights[row][key] * values[key].
struct CachedSum {
  const float* weights;  ///< [rows][pitch]
  int64_t pitch;
  int64_t rows, width;
  const std::byte* values;  ///< of the first key, or of block 0 with `table`
  const int64_t* table;     ///< as above; keys begin with a block
  int64_t slot_bytes;
  int64_t keys;
  float* out;  ///< [rows][width]
};

struct CachedLoops {
  void (*scores)(const CachedScores& task);
  void (*sum)(const CachedSum& task);
};

/// For caches of f32, bf16 or int8.
CachedLoops cached_loops(DType cache);

}  // namespace paddle::cpu
