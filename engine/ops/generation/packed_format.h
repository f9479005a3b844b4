#pragma once
// Formats of packed weights: GGUF's blocks of integers with scales.

#include <cstdint>
#include <string_view>

namespace paddle {

struct PackedFormat {
  std::string_view name;
  int64_t values, bytes;  ///< of a block
};

/// Null for an unknown name, and for "float".
const PackedFormat* find_packed_format(std::string_view name);

/// Keys of a cache are stored in blocks of this many tokens, so that the scores of a block are
/// summed in the lanes of vectors.
constexpr int64_t kKeyBlock = 16;
/// Bytes of an int8 cache that hold the scale of a token and head.
constexpr int64_t kCacheScaleBytes = 4;

}  // namespace paddle
