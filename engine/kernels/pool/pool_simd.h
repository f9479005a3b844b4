#pragma once
// Vector loops of pooling.

#include <cstdint>

namespace paddle::cpu {

/// Max pooling with 2 × 2 windows and stride 2: `rows` times n windows of a plane whose rows have
/// `width` elements; NaN if an element is NaN. `indices` (may be null) receives the index of the
/// maximum in the plane: the first of equal ones, the last NaN.
void max_pool_2x2(const float* x, int32_t width, int64_t rows, int64_t n, float* out,
                  int32_t* indices);

/// The gradient of that: grad at the index, 0 elsewhere in the window. Returns false if an index is
/// outside its window; the plane is then incomplete.
bool max_pool_2x2_grad(const float* grad, const int32_t* indices, int64_t rows, int64_t n,
                       int32_t width, float* out);

/// out[i] = the maximum of rows[k][i] over `count` rows, for i < n.
void max_of_rows(const uint8_t* const* rows, int64_t count, int64_t n, uint8_t* out);
void max_of_rows(const int8_t* const* rows, int64_t count, int64_t n, int8_t* out);
/// The same for floats; NaN if an element is NaN. `indices` (may be null) receives row_indices[k]
/// of the maximum: the first of equal ones, the last NaN.
void max_of_rows(const float* const* rows, const int32_t* row_indices, int64_t count, int64_t n,
                 float* out, int32_t* indices);

// Maxima of rows without NaN; of equal elements (zeros of both signs) the first.

/// Copies x to out; true if an element is NaN.
bool copy_and_find_nan(const float* x, int64_t n, float* out);
/// out[i] = the largest of x[i], x[i + shift], … for `count` elements from 2 to 4; out may be x.
void max_of_shifted(const float* x, int64_t shift, int64_t count, int64_t n, float* out);
/// out[i] = the largest of x[2 i], x[2 i + 1], … for `count` elements from 1 to 4. Reads one
/// element more of each window if `count` is odd.
void max_of_pairs(const float* x, int64_t count, int64_t n, float* out);

}  // namespace paddle::cpu
