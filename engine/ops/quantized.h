#pragma once
// The operands of quantized_conv, quantized_linear and quantized_matmul (schema/quantized.yaml)
// by position, for the pass that makes such operations and the kernels that run them, and what the
// pass asks of those kernels.

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
  kYZero = kOperandCount,  ///< quantized_matmul alone
};

/// 8-bit weights minus their zero point (one, or one per place of the axis `channel`) as int8.
/// Where they do not all fit there are two arrays whose sum they are; none if the zero points do
/// not fit.
std::vector<Array> centred_weights(const Array& weights, const Array& zero, int64_t channel);

/// True if a backend multiplies integers of type `x` with these int8 weights exactly and faster
/// than floats.
using TakesIntegersFn = bool (*)(DType x, const Array& weight);
void register_takes_integers(TakesIntegersFn takes_integers);
bool takes_integers(DType x, const Array& weight);
/// True if a backend multiplies matrices of bytes that are both values, whatever their zero points,
/// exactly and faster than floats.
using TakesValuesFn = bool (*)();
void register_takes_values(TakesValuesFn takes_values);
bool takes_values();

}  // namespace paddle::quantized
