#pragma once
// Block-quantized weights of GGUF files, by their ggml type number. A block stores 32, 64 or 256
// neighboring values as integers with one float16 scale; K-quants add scales and minima per
// sub-block, and IQ formats store indices into a codebook of vectors.
// Format: https://github.com/ggml-org/ggml/blob/master/docs/gguf.md

#include <cstddef>
#include <cstdint>
#include <span>

namespace paddle::formats::gguf {

struct BlockFormat {
  int64_t type;    ///< ggml type number
  int64_t values;  ///< per block
  int64_t bytes;   ///< per block
  /// Dequantizes one block.
  void (*dequantize)(const uint8_t* block, float* out);
};

/// Null if the type is not supported.
const BlockFormat* find_block_format(int64_t type);

/// Codebook entries: eight magnitude indices of two bits (iq3_xxs: four of three bits), the first
/// in the lowest bits.
std::span<const uint16_t, 256> iq2_xxs_codebook();
std::span<const uint16_t, 512> iq2_xs_codebook();
std::span<const uint16_t, 1024> iq2_s_codebook();
std::span<const uint16_t, 256> iq3_xxs_codebook();

}  // namespace paddle::formats::gguf
