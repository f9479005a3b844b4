#pragma once
// The geometry of 2-D pooling, read once from attributes and layouts. All implementations start
// from it.

#include <algorithm>

#include "base/parallel.h"
#include "kernels/conv/conv_shape.h"

namespace paddle::cpu {

struct PoolShape {
  int64_t batch, channels, height, width, out_height, out_width;
  int64_t kernel_height = 1, kernel_width = 1, stride_height = 1, stride_width = 1;
  int64_t top = 0, bottom = 0, left = 0, right = 0;  ///< padding
  bool channels_last;

  PoolShape(const Dims& input, const Dims& output, bool last);
  /// Reads kernel size, strides and padding; `op` is named in errors.
  void windows(const AttrValue& kernel_size, const AttrValue& stride, const AttrValue& padding,
               std::string_view op);

  /// True for 2 × 2 windows with stride 2 that are all inside the input.
  bool is_2x2_stride_2() const {
    return kernel_height == 2 && kernel_width == 2 && stride_height == 2 && stride_width == 2 &&
           top == 0 && left == 0 && 2 * out_height <= height && 2 * out_width <= width;
  }

  /// True for windows that are whole planes of neighbors.
  bool covers_planes() const {
    return !channels_last && out_height == 1 && out_width == 1 && top == 0 && left == 0 &&
           kernel_height == height && kernel_width == width;
  }

  ImageStrides in() const { return ImageStrides::of(channels, height, width, channels_last); }
  ImageStrides out() const {
    return ImageStrides::of(channels, out_height, out_width, channels_last);
  }

  /// Calls `body(input offset, output offset)` for every plane, in parallel.
  template <class Body>
  void for_each_plane(int64_t work, Body body) const {
    const ImageStrides i = in(), o = out();
    parallel_for(batch * channels, std::max<int64_t>(1, 16384 / std::max<int64_t>(1, work)),
                 [&](int64_t begin, int64_t end) {
                   for (int64_t p = begin; p < end; ++p)
                     body(p / channels * i.batch + p % channels * i.channel,
                          p / channels * o.batch + p % channels * o.channel);
                 });
  }
};

/// The part of a window inside the input, and the divisor of its sum.
struct PoolWindow {
  int64_t first_h, last_h, first_w, last_w;
  double divisor;
};

/// The divisor of average pooling.
struct Average {
  bool exclusive;  ///< counts only elements inside the input
  double divisor;  ///< 0: the window's size

  PoolWindow at(const PoolShape& s, int64_t row, int64_t column) const;
};

}  // namespace paddle::cpu
