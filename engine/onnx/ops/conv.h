#pragma once
// Convolution, shared by Conv and its quantized and fused variants.

#include "onnx/graph/node_call.h"
#include "onnx/ops/window.h"

namespace paddle::onnx {

/// Window of a convolution with weight [out, in / groups, ...] over x, from the node's attributes.
Window conv_window(const NodeCall& c, const Tensor& x, const Tensor& weight);
/// Convolution over 1 to 3 spatial axes with the node's strides, pads, dilations and group.
Tensor convolve(const NodeCall& c, const Tensor& x, const Tensor& weight, const Tensor& bias);
/// Adds bias (input 2), residual (input 3) and activation of FusedConv.
Tensor fused_conv(const NodeCall& c, const Tensor& x, const Tensor& weight);

}  // namespace paddle::onnx
