#pragma once
// Quantized convolutions and matmuls with constant weights for processors without VNNI: int8 values
// are widened to int16, whose products are exact.

#include <utility>

#include "tensor/tensor.h"

namespace paddle::cpu {

/// True if this is faster than float for these int8 weights, whatever the dtype of the activations:
/// matrices, and 2-D kernels over several channels.
bool int16_gemm_is_faster(const Array& weight);

/// The scalar of this dtype at `value`.
float read_scalar(const void* value, DType dtype);
/// The minimum and maximum of an 8- or 16-bit integer dtype.
std::pair<float, float> integer_range(DType dtype);

}  // namespace paddle::cpu
