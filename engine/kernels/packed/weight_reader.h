#pragma once
// Weights of packed rows as floats.

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "kernels/common/convert.h"
#include "kernels/packed/unpack.h"
#include "ops/generation/packed_format.h"

namespace paddle::cpu {

class WeightReader {
 public:
  /// `format` as packed_linear takes it; `dtype` is that of the weight.
  WeightReader(std::string_view format, DType dtype);

  /// Weights [first, first + count) of a row. In blocks, both are multiples of 32.
  void read(const std::byte* row, int64_t first, int64_t count, float* out) const;

 private:
  const UnpackedFormat* unpacked_;  ///< null for floats
  const PackedFormat* blocks_;
  ConvertFn widen_;
  int64_t item_bytes_;
};

}  // namespace paddle::cpu
