#pragma once
// Convolutions and products on integers, as far as the pass that makes them asks.

#include "tensor/tensor.h"

namespace paddle::onednn {

/// True if integers of type `x` are multiplied with these int8 weights exactly, and faster than
/// floats.
bool int8_weights_are_faster(DType x, const Array& weight);
/// True if there is generated code for products of bytes with zero points on both sides.
bool int8_matmul_is_faster();

}  // namespace paddle::onednn
