#pragma once
// Vectorized conversions of contiguous arrays from f32 to integers (as to_integer.h says) and bool.

#include <cstdint>

namespace paddle::cpu {

void float_to_integer(const float* source, int8_t* target, int64_t n);
void float_to_integer(const float* source, uint8_t* target, int64_t n);
void float_to_integer(const float* source, int16_t* target, int64_t n);
void float_to_integer(const float* source, uint16_t* target, int64_t n);
void float_to_integer(const float* source, int32_t* target, int64_t n);
void float_to_integer(const float* source, uint32_t* target, int64_t n);
void float_to_integer(const float* source, int64_t* target, int64_t n);
void float_to_integer(const float* source, uint64_t* target, int64_t n);
void float_to_bool(const float* source, bool* target, int64_t n);

}  // namespace paddle::cpu
