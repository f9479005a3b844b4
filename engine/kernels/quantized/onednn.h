#pragma once
// Convolutions and products on integers, as far as the pass that makes them asks.

#include "tensor/tensor.h"

namespace paddle::onednn {

/// True if integers of type `x` are multiplied with these int8 weights exactly, and faster than
/// floats.
bool takes_integers(DType x, const Array& weight);
/// True if there is generated code for products of bytes with zero points on both sides.
bool takes_values();

}  // namespace paddle::onednn
