#pragma once
// Vector loops of cumulative sums across rows.

#include <cstdint>

namespace paddle::cpu {

/// For each of `rows` rows, `stride` elements apart: sums[i] += x[i], and out[i] = sums[i] rounded.
/// `out` has the strides of x, and may be x.
void accumulate_rows(const float* x, int64_t rows, int64_t stride, double* sums, float* out,
                     int64_t n);
/// The same for one row.
void accumulate_row(const double* x, double* sums, double* out, int64_t n);
/// Integers wrap around.
void accumulate_row(const uint64_t* x, uint64_t* sums, uint64_t* out, int64_t n);

}  // namespace paddle::cpu
