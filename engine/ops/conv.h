#pragma once
// What the rules of convolutions on floats and on integers share.

#include "ops/generated/attrs.h"
#include "ops/rules.h"

namespace paddle {

/// The shape of conv2d's result for operand 0 and the weight, operand 1; refuses what does not fit.
Shape conv2d_shape(InferContext& c, const Conv2dAttrs& a);

}  // namespace paddle
