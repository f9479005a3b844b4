#pragma once
// Convolutions of images and products on bytes whose weights stay the same, exact on processors
// that lack instructions for sums of products of bytes (VNNI).

#include <utility>

#include "tensor/tensor.h"

namespace paddle::cpu {

/// True if bytes are multiplied with these int8 weights faster than floats, whatever the type of
/// the bytes: matrices, and windows of images over several channels.
bool int16_gemm_is_faster(const Array& weight);

/// The number of this type at `value`.
float read_scalar(const void* value, DType dtype);
/// The least and the greatest integer of 8 or 16 bits that values are quantised to.
std::pair<float, float> integer_range(DType dtype);

}  // namespace paddle::cpu
