#pragma once
// Conversion of arrays between element types, with a strided source. Used by casts and by every
// kernel that computes 16-bit floats in f32.

#include <cstdint>

#include "tensor/dtype.h"

namespace paddle::cpu {

/// Converts n elements, `stride` apart in `source`, to contiguous ones. Float to integer truncates
/// towards zero; anything to bool is "is not 0"; complex to real drops the imaginary part.
using ConvertFn = void (*)(const void* source, int64_t stride, void* target, int64_t n);

/// Throws kUsage for dtypes without kernels.
ConvertFn convert_fn(DType from, DType to);

/// Vectorized conversions of contiguous arrays between f32 and 16-bit floats.
void half_to_float(const float16* source, float* target, int64_t n);
void float_to_half(const float* source, float16* target, int64_t n);
void bfloat_to_float(const bfloat16* source, float* target, int64_t n);
void float_to_bfloat(const float* source, bfloat16* target, int64_t n);

}  // namespace paddle::cpu
