#pragma once
// Matrices in packed rows, as the operation packed_linear takes them.

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "formats/gguf/reader.h"
#include "tensor/tensor.h"

namespace paddle::convert {

struct PackedWeight {
  Array rows;          ///< [rows, bytes] of blocks, or [rows, features] of floats
  std::string format;  ///< "float", or blocks of GGUF
  int64_t features = 0;
};

/// The form of a PackedWeight, without its values.
struct PackedForm {
  std::string format;
  DType dtype = DType::kF32;
  Dims shape;  ///< of the rows
  int64_t features = 0;
};

/// The form in which matrices are kept in memory.
enum class WeightType : uint8_t {
  kAsIs,  ///< of the file
  kInt8,  ///< q8_0
  kInt4,  ///< q4_k where rows are multiples of 256, else q4_0
};
/// From "as-is", "int8" or "int4"; nothing for another word.
std::optional<WeightType> find_weight_type(const std::string& word);

/// The block type of a matrix with rows of `features` weights; "" for the one of its file.
std::string block_name(WeightType type, int64_t features);
/// A matrix [rows, features] of a GGUF file in its blocks, which stay in the mapped file; nothing
/// for a type that operations do not compute with.
std::optional<PackedWeight> mapped_rows(const std::shared_ptr<const formats::gguf::Reader>& reader,
                                        const formats::gguf::TensorInfo& tensor, int64_t rows,
                                        int64_t features);
/// Rows of floats in blocks of this type.
PackedWeight quantized_rows(const Array& rows, const std::string& block);

}  // namespace paddle::convert
