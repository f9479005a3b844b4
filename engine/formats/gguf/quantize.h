#pragma once
// Quantization of float32 values to blocks of GGUF files: as ggml's plain rule does it, or with
// scales that are searched for the least squared error.

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
  void (*plain)(const float* values, uint8_t* block);
  void (*searched)(const float* values, uint8_t* block);
};

/// How scales of blocks are chosen.
enum class BlockScales : uint8_t {
  kPlain,     ///< with ggml's bytes: from the largest value, or as k_quants.h says
  kSearched,  ///< for the least squared error; takes up to 20 times as long
};

/// By ggml's number or by name; null if there is none.
const BlockType* find_block_type(int64_t type);
const BlockType* find_block_type(std::string_view name);
std::vector<std::string> block_type_names();

/// Blocks of rows of values whose number is a multiple of the block's. NaN becomes 0.
std::vector<uint8_t> quantize(const BlockType& type, std::span<const float> values,
                              BlockScales scales = BlockScales::kPlain);

}  // namespace paddle::formats::gguf
