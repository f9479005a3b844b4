#pragma once
// What the rules of convolutions on floats and on integers share.

#include "ops/generated/attrs.h"
#include "ops/rules.h"

namespace paddle {

/// The shape of quantized_conv's result for operand 0 and the weight, operand 1, of the rank that
/// data_format says; refuses what does not fit.
Shape quantized_conv_shape(InferContext& c, const QuantizedConvAttrs& a);

}  // namespace paddle
