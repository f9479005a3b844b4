#pragma once
// Shared by the rules of float and quantized convolutions.

#include "ops/core/rules.h"
#include "ops/generated/quantization.h"

namespace paddle {

/// The result shape of quantized_conv for x (operand 0) and weight (operand 1), of the rank that
/// data_format implies; kUsage if they do not match.
Shape quantized_conv_shape(InferContext& c, const QuantizedConvAttrs& a);
/// kUsage unless x (operand 0) and weight (operand 1) of quantized_conv_transpose give images of
/// out_shape.
void check_quantized_conv_transpose(InferContext& c, const QuantizedConvTransposeAttrs& a);

}  // namespace paddle
