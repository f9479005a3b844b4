#pragma once
// The geometry of a convolution of images or volumes in numbers, read once from attributes and
// layouts; the kernels of every backend start from it.

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
  // Of volumes, which are planes of rows and columns one behind the other.
  int64_t planes = 1, out_planes = 1, kernel_planes = 1, stride_planes = 1, dilation_planes = 1;
  int64_t front = 0, back = 0;  ///< padding

  /// False for images, which are volumes of one plane.
  bool has_planes() const { return planes * out_planes * kernel_planes != 1 || front + back != 0; }
  int64_t positions() const { return out_planes * out_height * out_width; }
  int64_t group_inputs() const { return in_channels / groups; }
  int64_t group_outputs() const { return out_channels / groups; }
  /// Rows of the column matrix: input channels of a group times the kernel's places.
  int64_t depth() const { return group_inputs() * kernel_planes * kernel_height * kernel_width; }
  int64_t multiplications() const { return batch * positions() * out_channels * depth(); }

  /// From `input`, `weight` and `output` dims, of rank 4 or 5, and the operation's attributes
  /// (strides, padding, dilations, groups, data_format, by name).
  static ConvShape of(const Op& op, const Attrs& attrs, const Dims& input, const Dims& weight,
                      const Dims& output);
};

/// Planes of the kernel, from the first to behind the last one.
struct KernelPlanes {
  int64_t begin, end;
  int64_t count() const { return end - begin; }
  bool operator==(const KernelPlanes&) const = default;
};

/// Those that meet planes of the input, and no padding, for the output's plane `p`.
KernelPlanes met_by(const ConvShape& shape, int64_t p);

/// Volumes with channels last as images in the same memory, where their convolution is one of
/// images: of planes that lie apart, or of the lines across planes of pixels.
ConvShape as_images(ConvShape shape);

/// Strides of an image or volume tensor's batch, channel, plane, row and column.
struct ImageStrides {
  int64_t batch, channel, row, column, plane;
  static ImageStrides of(int64_t channels, int64_t height, int64_t width, bool channels_last,
                         int64_t planes = 1) {
    const int64_t batch = channels * planes * height * width;
    if (channels_last) return {batch, 1, width * channels, channels, height * width * channels};
    return {batch, planes * height * width, width, 1, height * width};
  }
};

}  // namespace paddle::cpu
