#pragma once
// Vector loops of pooling over planes.

#include <cstdint>

namespace paddle::cpu {

/// out[j] is the largest of top[2j], top[2j + 1], bottom[2j] and bottom[2j + 1], for j < n; NaN if
/// one of them is.
void largest_of_squares(const float* top, const float* bottom, int64_t n, float* out);

/// out[i] = the largest of rows[k][i] over the `count` rows, for i below n.
void largest_of_rows(const uint8_t* const* rows, int64_t count, int64_t n, uint8_t* out);
void largest_of_rows(const int8_t* const* rows, int64_t count, int64_t n, int8_t* out);

}  // namespace paddle::cpu
