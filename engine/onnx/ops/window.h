#pragma once
// Window attributes shared by convolution and pooling: kernel, strides, dilations, pads.

#include "onnx/graph/node_call.h"
#include "ops/core/attrs.h"

namespace paddle::onnx {

struct Window {
  std::vector<int64_t> kernel, stride, dilation;
  std::vector<int64_t> before, after;  ///< padding

  /// For the spatial axes of `shape` ([batch, channels, ...]). SAME_UPPER and SAME_LOWER need
  /// constant sizes.
  Window(const NodeCall& c, const Shape& shape, std::vector<int64_t> kernel_shape);
  size_t rank() const { return kernel.size(); }
  /// The window restricted to these axes; axes it does not have get a kernel of 1.
  Window along(const std::vector<size_t>& axes) const;
  /// [before, after] per axis, as the functions of ops/ take padding.
  AttrValue borders() const;
};

}  // namespace paddle::onnx
