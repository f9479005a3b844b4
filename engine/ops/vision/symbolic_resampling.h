#pragma once
// Resampling of axes whose sizes are known only at run time: the weights are computed by operations
// on ranges instead of being constants.

#include "ops/core/compose.h"
#include "ops/generated/vision.h"

namespace paddle::rules {

/// The weights [out, in] of `interpolate` in float64; `factor` is 0 if the size of the result was
/// given.
Tensor symbolic_resampling_weights(const InterpolateAttrs& a, const Dim& in, const Dim& out,
                                   double factor);
/// The coordinates in [-1, 1] of the pixels of an axis, for `affine_grid`.
Tensor symbolic_grid(const Dim& size, bool align_corners);

}  // namespace paddle::rules
