#pragma once
// Conversion of runs of elements between element types, strided on the reading side. Casts, and
// every kernel that computes 16-bit floats in f32, go through here.

#include <cstdint>

#include "tensor/dtype.h"

namespace paddle::cpu {

/// Writes n contiguous elements from every `stride`-th element of `source`. Float to integer
/// truncates towards zero; anything to bool is "is not 0".
using ConvertFn = void (*)(const void* source, int64_t stride, void* target, int64_t n);

/// Throws kUsage for types that have no kernels.
ConvertFn convert_fn(DType from, DType to);

/// Contiguous f32 to and from 16-bit floats, vectorised.
void half_to_float(const float16* source, float* target, int64_t n);
void float_to_half(const float* source, float16* target, int64_t n);
void bfloat_to_float(const bfloat16* source, float* target, int64_t n);
void float_to_bfloat(const float* source, bfloat16* target, int64_t n);

}  // namespace paddle::cpu
