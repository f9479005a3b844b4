#pragma once
// Transposes, conjugates and batch shapes of matrices, for the .cc files of rules.

#include "ops/generated/complex.h"
#include "ops/generated/linalg.h"
#include "ops/generated/shape.h"
#include "tensor/complex.h"

namespace paddle::rules {

/// The shape without the two axes of the matrices.
inline Shape batch_of(const Shape& matrices) { return Shape(matrices.begin(), matrices.end() - 2); }

inline Tensor transposed(const Tensor& x) { return ops::matrix_transpose(x); }
/// x itself if it is real.
inline Tensor conjugate(const Tensor& x) { return is_complex(x.dtype()) ? ops::conj(x) : x; }
inline Tensor adjoint(const Tensor& x) { return transposed(conjugate(x)); }

}  // namespace paddle::rules
