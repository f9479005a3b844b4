#pragma once
// Vector loops of pooling over planes.

#include <cstdint>

namespace paddle::cpu {

/// out[j] is the largest of top[2j], top[2j + 1], bottom[2j] and bottom[2j + 1], for j < n; NaN if
/// one of them is.
void largest_of_squares(const float* top, const float* bottom, int64_t n, float* out);

}  // namespace paddle::cpu
