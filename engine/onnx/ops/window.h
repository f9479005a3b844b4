#pragma once
// The window attributes that convolutions and pools share: kernel, strides, dilations, borders.

#include "onnx/graph/node_call.h"

namespace paddle::onnx {

struct Window {
  std::vector<int64_t> kernel, stride, dilation;
  std::vector<int64_t> before, after;  ///< borders

  /// For the spatial axes of `shape` ([batch, channels, ...]). SAME_UPPER and SAME_LOWER need
  /// known sizes.
  Window(const NodeCall& c, const Shape& shape, std::vector<int64_t> kernel_shape);
  size_t rank() const { return kernel.size(); }
  /// The window along these of its axes; one that it does not have is a single place.
  Window along(const std::vector<size_t>& axes) const;
  /// [before, after] for each axis in turn, as the functions of ops/ take them.
  AttrValue borders() const;
};

}  // namespace paddle::onnx
