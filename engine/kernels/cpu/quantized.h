#pragma once
// Convolutions of images and products on bytes whose weights stay the same, exact on processors
// that lack instructions for sums of products of bytes (VNNI).

#include "tensor/tensor.h"

namespace paddle::cpu {

/// True if bytes are multiplied with these int8 weights faster than floats, whatever the type of
/// the bytes: matrices, and windows of images over several channels.
bool multiplies_in_pairs(const Array& weight);

}  // namespace paddle::cpu
