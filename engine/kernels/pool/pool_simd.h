#pragma once
// Vector loops of pooling over planes.

#include <cstdint>

namespace paddle::cpu {

/// The largest of each of `rows` times n squares of a plane whose rows have `width` elements, NaN
/// if one of them is; unless `places` is null, it tells where that stands in the plane: of equal
/// ones the first, of NaN the last.
void max_pool_2x2(const float* x, int32_t width, int64_t rows, int64_t n, float* out,
                  int32_t* indices);

/// Gives back to those squares: grad at its place, 0 to the others. False if a place lies outside
/// its square; then the plane is not complete.
bool max_pool_2x2_grad(const float* grad, const int32_t* indices, int64_t rows, int64_t n,
                       int32_t width, float* out);

/// out[i] = the largest of rows[k][i] over the `count` rows, for i below n.
void max_of_rows(const uint8_t* const* rows, int64_t count, int64_t n, uint8_t* out);
void max_of_rows(const int8_t* const* rows, int64_t count, int64_t n, int8_t* out);
/// The same of floats, NaN if one of them is; unless `places` is null, it tells the number of the
/// row, of equal ones the first, of NaN the last.
void max_of_rows(const float* const* rows, const int32_t* row_indices, int64_t count, int64_t n,
                 float* out, int32_t* indices);

}  // namespace paddle::cpu
