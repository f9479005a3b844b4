#pragma once
// The geometry of a 2-D convolution in numbers, read once from attributes and layouts; the kernels
// of every backend start from it.

#include "ops/kernel.h"

namespace paddle::cpu {

struct ConvShape {
  int64_t batch, in_channels, out_channels, groups;
  int64_t height, width;  ///< of the input
  int64_t out_height, out_width;
  int64_t kernel_height, kernel_width;
  int64_t stride_height, stride_width;
  int64_t dilation_height, dilation_width;
  int64_t top, bottom, left, right;  ///< padding
  bool channels_last;

  int64_t positions() const { return out_height * out_width; }
  int64_t group_inputs() const { return in_channels / groups; }
  int64_t group_outputs() const { return out_channels / groups; }
  /// Rows of the column matrix: input channels of a group times the kernel's places.
  int64_t depth() const { return group_inputs() * kernel_height * kernel_width; }
  int64_t multiplications() const { return batch * positions() * out_channels * depth(); }

  /// From `input`, `weight` and `output` dims and the operation's attributes (strides, padding,
  /// dilations, groups, data_format, by name).
  static ConvShape of(const Op& op, const Attrs& attrs, const Dims& input, const Dims& weight,
                      const Dims& output);
};

/// Strides of an image tensor's batch, channel, row and column.
struct ImageStrides {
  int64_t batch, channel, row, column;
  static ImageStrides of(int64_t channels, int64_t height, int64_t width, bool channels_last) {
    if (channels_last) return {channels * height * width, 1, width * channels, channels};
    return {channels * height * width, height * width, width, 1};
  }
};

}  // namespace paddle::cpu
