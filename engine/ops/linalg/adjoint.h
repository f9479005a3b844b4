#pragma once
// Transposes and conjugates, for the .cc files of rules.

#include "ops/generated/complex.h"
#include "ops/generated/linalg.h"
#include "ops/generated/shape.h"
#include "tensor/complex.h"

namespace paddle::rules {

inline Tensor transposed(const Tensor& x) { return ops::matrix_transpose(x); }
/// x itself if it is real.
inline Tensor conjugate(const Tensor& x) { return is_complex(x.dtype()) ? ops::conj(x) : x; }
inline Tensor adjoint(const Tensor& x) { return transposed(conjugate(x)); }

}  // namespace paddle::rules
