#pragma once
// Resampling of the spatial axes of images, shared by interpolate and PaddlePaddle's older
// operations, which also place nearest elements by corners.

#include "ops/generated/vision.h"
#include "tensor/tensor.h"

namespace paddle::rules {

Tensor resample(const Tensor& x, const InterpolateAttrs& a);

}  // namespace paddle::rules
