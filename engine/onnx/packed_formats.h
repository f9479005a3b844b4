#pragma once
// Weights in the packed blocks of GGUF files, by the numbers that their types have there. A block
// holds the integers of 32, 64 or 256 neighbours with one float16 that scales them, some formats
// further scales and minima of its parts; the `iq` formats hold indices of vectors in a codebook.

#include <cstddef>
#include <cstdint>
#include <span>

namespace paddle::onnx {

struct PackedFormat {
  int64_t type;    ///< its number
  int64_t values;  ///< in a block
  int64_t bytes;   ///< of a block
  /// The numbers of one block.
  void (*unpack)(const uint8_t* block, float* out);
};

/// Null if there is no such format.
const PackedFormat* packed_format(int64_t type);

/// Vectors of the formats' codebooks, as indices of magnitudes: eight of two bits, the first one
/// lowest, or (`packed_quads`) four of three bits.
std::span<const uint16_t, 256> packed_vectors_256();
std::span<const uint16_t, 512> packed_vectors_512();
std::span<const uint16_t, 1024> packed_vectors_1024();
std::span<const uint16_t, 256> packed_quads();

}  // namespace paddle::onnx
