#pragma once
// Products of complex matrices: four real products of each block, read in place with twice the
// strides.

#include <memory>

#include "kernels/linalg/matmul_shape.h"
#include "ops/core/kernel.h"

namespace paddle::cpu {

/// `bias` may be null; it broadcasts to the result's shape.
std::unique_ptr<Kernel> complex_matmul(DType dtype, const MatmulShape& shape, const Layout* bias,
                                       const Dims& result);

}  // namespace paddle::cpu
