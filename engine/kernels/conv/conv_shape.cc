#include "kernels/conv/conv_shape.h"

#include <algorithm>
#include <utility>

#include "kernels/common/rounding.h"
#include "ops/nn/window.h"

namespace paddle::cpu {

ConvShape ConvShape::of(const Op& op, const Attrs& attrs, const Dims& input, const Dims& weight,
                        const Dims& output) {
  const auto attr = [&](const char* name) -> const AttrValue& {
    return attrs[static_cast<size_t>(op.attr_index(name))];
  };
  const std::string what(op.name());
  const size_t rank = input.size() - 2;
  ConvShape s;
  s.channels_last = attr("data_format").as_string().ends_with('C');
  const size_t channel = s.channels_last ? rank + 1 : 1, first = s.channels_last ? 1 : 2;
  s.batch = input[0];
  s.in_channels = input[channel];
  s.out_channels = output[channel];
  s.groups = attr("groups").as_int();
  const auto spatial = [rank](const Dims& dims, size_t from) {
    const auto begin = dims.begin() + static_cast<ptrdiff_t>(from);
    return std::vector<int64_t>(begin, begin + static_cast<ptrdiff_t>(rank));
  };
  const auto size = spatial(input, first), out = spatial(output, first),
             kernel = spatial(weight, 2);
  const auto stride = window_sizes(attr("stride"), rank, what);
  const auto dilation = window_sizes(attr("dilation"), rank, what);
  const auto padding = window_padding(attr("padding"), to_shape(size), kernel, stride, dilation,
                                      s.channels_last, what);
  const size_t row = rank - 2, column = rank - 1;
  s.height = size[row];
  s.width = size[column];
  s.out_height = out[row];
  s.out_width = out[column];
  s.kernel_height = kernel[row];
  s.kernel_width = kernel[column];
  s.stride_height = stride[row];
  s.stride_width = stride[column];
  s.dilation_height = dilation[row];
  s.dilation_width = dilation[column];
  s.top = padding[2 * row];
  s.bottom = padding[2 * row + 1];
  s.left = padding[2 * column];
  s.right = padding[2 * column + 1];
  if (rank < 3) return s;
  s.depth = size[0];
  s.out_depth = out[0];
  s.kernel_depth = kernel[0];
  s.stride_depth = stride[0];
  s.dilation_depth = dilation[0];
  s.front = padding[0];
  s.back = padding[1];
  return s;
}

KernelRange valid_kernel_range(const ConvShape& s, int64_t p) {
  const int64_t at = p * s.stride_depth - s.front, step = s.dilation_depth;
  const int64_t begin = at >= 0 ? 0 : ceil_div(-at, step);
  const int64_t end = at >= s.depth ? 0 : std::min(s.kernel_depth, ceil_div(s.depth - at, step));
  return {begin, std::max(begin, end)};
}

ConvShape fold_to_2d(ConvShape s) {
  if (!s.channels_last || !s.is_3d()) return s;
  const bool per_plane = s.kernel_depth == 1 && s.stride_depth == 1 && s.front + s.back == 0;
  const bool along_depth = s.kernel_height == 1 && s.kernel_width == 1 && s.stride_height == 1 &&
                           s.stride_width == 1 && s.top + s.bottom + s.left + s.right == 0;
  if (per_plane) {
    s.batch *= s.depth;
  } else if (along_depth) {
    s.width *= s.height;
    s.out_width = s.width;
    s.height = s.depth;
    s.out_height = s.out_depth;
    s.kernel_height = s.kernel_depth;
    s.stride_height = s.stride_depth;
    s.dilation_height = s.dilation_depth;
    s.top = s.front;
    s.bottom = s.back;
  } else {
    return s;
  }
  s.depth = s.out_depth = s.kernel_depth = s.stride_depth = s.dilation_depth = 1;
  s.front = s.back = 0;
  return s;
}

ConvShape transpose_to_row(ConvShape s) {
  if (s.width != 1 || s.kernel_width != 1 || s.out_width != 1 || s.left + s.right != 0) return s;
  std::swap(s.height, s.width);
  std::swap(s.out_height, s.out_width);
  std::swap(s.kernel_height, s.kernel_width);
  std::swap(s.stride_height, s.stride_width);
  std::swap(s.dilation_height, s.dilation_width);
  std::swap(s.top, s.left);
  std::swap(s.bottom, s.right);
  return s;
}

}  // namespace paddle::cpu
