#pragma once
// Quantization of float32 values to blocks of GGUF files, as ggml's plain rule does it.

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace paddle::formats::gguf {

/// A type that values are quantized to: blocks of 32 values with a float16 scale and, in q4_1 and
/// q5_1, a smallest value; or a k-quant (k_quants.h).
struct BlockType {
  const char* name;  ///< "q8_0"
  int64_t type;      ///< ggml's number
  int64_t values, bytes;
  void (*quantize)(const float* values, uint8_t* block);
};

/// By ggml's number or by name; null if there is none.
const BlockType* find_block_type(int64_t type);
const BlockType* find_block_type(std::string_view name);
std::vector<std::string> block_type_names();

/// Blocks of rows of values whose number is a multiple of the block's. NaN becomes 0.
std::vector<uint8_t> quantize(const BlockType& type, std::span<const float> values);

}  // namespace paddle::formats::gguf
