#include "kernels/packed/weight_reader.h"

#include "kernels/packed/panels.h"

namespace paddle::cpu {

WeightReader::WeightReader(std::string_view format, DType dtype)
    : unpacked_(find_unpacked_format(format)),
      blocks_(find_packed_format(format)),
      widen_(unpacked_ ? nullptr : convert_fn(dtype, DType::kF32)),
      item_bytes_(item_size(dtype)) {}

void WeightReader::read(const std::byte* row, int64_t first, int64_t count, float* out) const {
  if (!unpacked_) {
    widen_(row + first * item_bytes_, 1, out, count);
    return;
  }
  const int64_t units_of_block = blocks_->values / kUnit;
  const auto* const bytes = reinterpret_cast<const uint8_t*>(row);
  for (int64_t u = first / kUnit; u < (first + count) / kUnit; ++u) {
    WeightUnit unit;
    unpacked_->unpack(bytes + u / units_of_block * blocks_->bytes, u % units_of_block, unit);
    const UnitFactors factors = unit_factors(unpacked_->scales, unit);
    for (int64_t half = 0; half < 2; ++half)
      for (int64_t k = half * 16; k < half * 16 + 16; ++k)
        *out++ = factors.factor[half] * static_cast<float>(unit.quants[k] - unpacked_->offset) +
                 factors.minimum;
  }
}

}  // namespace paddle::cpu
