#pragma once
// Element loops between numbers and the integers that stand for them, for the best instruction set
// of the machine.

#include "kernels/elementwise/loops.h"

namespace paddle::cpu {

/// in: x, scale, zero point as float32; out: integers of `result`. Null for types that values are
/// not quantised to.
Loop quantize_loop(DType result);
/// in: integers, scale, zero point as float32; out: float32.
Loop dequantize_loop();
/// The least and the greatest of n numbers and zero; NaN is passed over.
void min_max_with_zero(const float* x, int64_t n, float& low, float& high);

}  // namespace paddle::cpu
