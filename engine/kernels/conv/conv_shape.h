#pragma once
// The geometry of a 2-D or 3-D convolution, read once from attributes and layouts. All algorithms
// start from it.

#include "ops/core/kernel.h"

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
  // Of 3-D convolutions (NCDHW); 2-D ones have a depth of 1.
  int64_t depth = 1, out_depth = 1, kernel_depth = 1, stride_depth = 1, dilation_depth = 1;
  int64_t front = 0, back = 0;  ///< padding

  bool is_3d() const { return depth * out_depth * kernel_depth != 1 || front + back != 0; }
  /// Outputs of one channel of one sample.
  int64_t positions() const { return out_depth * out_height * out_width; }
  int64_t group_in_channels() const { return in_channels / groups; }
  int64_t group_out_channels() const { return out_channels / groups; }
  /// Rows of the im2col matrix: input channels of a group times kernel elements.
  int64_t window_size() const {
    return group_in_channels() * kernel_depth * kernel_height * kernel_width;
  }
  int64_t multiplications() const { return batch * positions() * out_channels * window_size(); }

  /// From `input`, `weight` and `output` dims, of rank 4 or 5, and the operation's attributes
  /// (strides, padding, dilations, groups, data_format, by name).
  static ConvShape of(const Op& op, const Attrs& attrs, const Dims& input, const Dims& weight,
                      const Dims& output);
};

/// Planes [begin, end) of the kernel.
struct KernelRange {
  int64_t begin, end;
  int64_t count() const { return end - begin; }
  bool operator==(const KernelRange&) const = default;
};

/// The planes of the kernel that read the input rather than padding for output plane `p`.
KernelRange valid_kernel_range(const ConvShape& shape, int64_t p);

/// A 3-D convolution in NDHWC as a 2-D one on the same memory, where it is one: kernels of one
/// plane fold the depth into the batch, kernels of 1 × 1 pixels fold the columns into the rows.
/// Others are returned unchanged.
ConvShape fold_to_2d(ConvShape shape);

/// A convolution of images one pixel wide, as frameworks write 1-D ones, as one of images one pixel
/// high. The memory is the same, and oneDNN is several times faster on it.
ConvShape transpose_to_row(ConvShape shape);

/// Strides of the axes of an NCHW, NHWC, NCDHW or NDHWC tensor.
struct ImageStrides {
  int64_t batch, channel, row, column, plane;
  static ImageStrides of(int64_t channels, int64_t height, int64_t width, bool channels_last,
                         int64_t depth = 1) {
    const int64_t batch = channels * depth * height * width;
    if (channels_last) return {batch, 1, width * channels, channels, height * width * channels};
    return {batch, depth * height * width, width, 1, height * width};
  }
};

}  // namespace paddle::cpu
