#pragma once
// Which quantized operations oneDNN computes well, for the pass that creates them.

#include "ops/core/target.h"
#include "tensor/tensor.h"

namespace paddle::onednn {

/// True if activations of dtype `x` are multiplied with these int8 weights exactly, and faster than
/// float.
bool has_int8_kernel(const TargetInfo& target, DType x, const Array& weight);
/// True if there is generated code for matmuls of two int8 activations with zero points on both
/// sides.
bool has_int8_matmul(const TargetInfo& target, DType x, DType y);

}  // namespace paddle::onednn
