#pragma once
// The operands of quantized_conv, quantized_linear and quantized_matmul (the schema's operations)
// by index, and queries for the kernels of these operations. For QDQ lowering and the kernels.

#include <cstddef>
#include <vector>

#include "tensor/tensor.h"

namespace paddle::quantized {

enum Operand : size_t {
  kX,
  kWeight,  ///< quantized_matmul: y
  kXZero,
  kScale,
  kBias,
  kStepScale,
  kStepZero,
  kResidual,
  kResidualScale,
  kResidualZero,
  kOutScale,
  kOutZero,
  kOperandCount,
  kYZero = kOperandCount,  ///< quantized_matmul only
};

/// 8-bit weights minus their zero point (per tensor, or per channel along the axis `channel`) as
/// int8. Two arrays, to be summed, if the differences do not fit into int8; empty if the zero
/// points have another shape.
std::vector<Array> centered_weights(const Array& weights, const Array& zero, int64_t channel);

}  // namespace paddle::quantized
