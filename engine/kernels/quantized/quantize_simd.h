#pragma once
// Loops that quantize and dequantize, for the best instruction set of the machine.

#include "kernels/elementwise/loops.h"

namespace paddle::cpu {

/// in: x, scale, zero point as float32; out: integers of dtype `result`. Null for dtypes that
/// values are not quantized to.
Loop quantize_loop(DType result);
/// in: integers, scale, zero point as float32; out: float32.
Loop dequantize_loop();
/// Minimum and maximum of n values and zero; NaN is ignored.
void min_max_with_zero(const float* x, int64_t n, float& low, float& high);

}  // namespace paddle::cpu
