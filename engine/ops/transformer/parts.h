#pragma once
// Parts that the layers of transformers under PaddlePaddle's names share. For the .cc files of this
// folder.

#include <string>
#include <string_view>

#include "ops/core/compose.h"
#include "ops/quantization/int8.h"

namespace paddle::rules {

/// A declared operand by name, undefined if it is not given.
Tensor optional(CallContext& c, const char* name);
/// x, or with a positive `quant_scale` x rounded to int8 (see rounded_to_int8).
Tensor quantized_result(std::string_view op, const Tensor& x, double quant_scale,
                        const Int8Rounding& rounding);
/// relu, gelu, silu, sigmoid, tanh, identity, swiglu or geglu of x.
Tensor activation(std::string_view op, const std::string& name, const Tensor& x);
/// layer_norm over the last axis, weight and bias optional.
Tensor normalized(const Tensor& x, const Tensor& weight, const Tensor& bias, double epsilon);
Tensor plus(const Tensor& x, const Tensor& bias);
/// x [n, sequence, heads, dim] turned; cos and sin are [n or 1, sequence, 1, dim or dim / 2].
Tensor turned(const Tensor& x, const Tensor& cos, const Tensor& sin, bool adjacent);

}  // namespace paddle::rules
