#pragma once
// The convolution that Conv and its quantised forms share.

#include "onnx/graph/node_call.h"
#include "onnx/ops/window.h"

namespace paddle::onnx {

/// The window that the weight [out, in / groups, ...] and the node's attributes make over x.
Window conv_window(const NodeCall& c, const Tensor& x, const Tensor& weight);
/// Convolution of 1 to 3 axes with the node's strides, pads, dilations and group.
Tensor convolve(const NodeCall& c, const Tensor& x, const Tensor& weight, const Tensor& bias);
/// The same with the bias (input 2), what is added (input 3) and the activation of a FusedConv.
Tensor fused_conv(const NodeCall& c, const Tensor& x, const Tensor& weight);

}  // namespace paddle::onnx
