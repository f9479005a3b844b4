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
  /// The window of a transposed convolution, whose pads are cut off the result. SAME_UPPER and
  /// SAME_LOWER cut what exceeds size * stride; where the result is smaller, it stays so.
  static Window transposed(const NodeCall& c, std::vector<int64_t> kernel_shape,
                           const std::vector<int64_t>& output_padding);
  size_t rank() const { return kernel.size(); }
  /// The window restricted to these axes; axes it does not have get a kernel of 1.
  Window along(const std::vector<size_t>& axes) const;
  /// [before, after] per axis, as the functions of ops/ take padding.
  AttrValue borders() const;

 private:
  /// Extents, and the pads that the node states.
  Window(const NodeCall& c, std::vector<int64_t> kernel_shape);
  /// Splits `total` for SAME_UPPER or SAME_LOWER.
  void set_pads(size_t axis, int64_t total, bool upper);
};

}  // namespace paddle::onnx
