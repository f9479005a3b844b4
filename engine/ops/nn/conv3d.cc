// Rules of conv.yaml: 3-D convolution as a sum of 2-D convolutions over the kernel's depth.

#include <algorithm>

#include "ops/generated/nn.h"
#include "ops/generated/nn_rules.h"
#include "ops/generated/shape.h"
#include "ops/nn/channels.h"
#include "ops/nn/window.h"

namespace paddle::rules {
namespace {

/// [n, c, d, h, w] as a batch of planes, [n * d, c, h, w], and back.
Tensor planes_of(const Tensor& x) {
  const Tensor turned = ops::transpose(x, {0, 2, 1, 3, 4});
  return ops::reshape(turned, {x.dim(0) * x.dim(2), x.dim(1), x.dim(3), x.dim(4)});
}

Tensor volume_of(const Tensor& planes, const Dim& batch, const Dim& depth) {
  const Tensor apart =
      ops::reshape(planes, {batch, depth, planes.dim(1), planes.dim(2), planes.dim(3)});
  return ops::transpose(apart, {0, 2, 1, 3, 4});
}

Tensor with_bias(const Tensor& y, const Tensor& bias) {
  return bias.defined() ? y + ops::reshape(bias, Shape{1, -1, 1, 1, 1}) : y;
}

/// Sizes of a 3-D convolution's window, from its weight and attributes.
struct Window {
  Axes kernel, stride, dilation;
};

Window window_of(const std::string& op, const Tensor& weight, const AttrValue& stride,
                 const AttrValue& dilation) {
  if (weight.ndim() != 5) reject(op, "weight must have 5 dimensions, not ", weight.type());
  return {{weight.dim(2).value(), weight.dim(3).value(), weight.dim(4).value()},
          window_sizes(stride, 3, op + ": stride"),
          window_sizes(dilation, 3, op + ": dilation")};
}

Tensor slice_of_weight(const Tensor& w, int64_t depth) {
  return ops::squeeze(slice_axis(w, 2, depth, depth + 1), Axes{2});
}

}  // namespace

Tensors decompose_conv3d(CallContext& c) {
  const auto a = c.attrs_as<Conv3dAttrs>();
  const Tensor x = volume_operand(c, a.data_format);
  const Tensor& w = c.operand(1);
  const Op& op = c.op();
  const std::string name(op.name());
  const auto [kernel, stride, dilation] = window_of(name, w, a.stride, a.dilation);
  const auto border = window_padding(a.padding, {x.dim(2), x.dim(3), x.dim(4)}, kernel, stride,
                                     dilation, a.data_format == "NDHWC", name);
  const Dim depth =
      window_count(x.dim(2), border[0], border[1], kernel[0], stride[0], dilation[0], false);
  const Tensor bordered =
      border[0] + border[1] > 0 ? ops::pad(x, {0, 0, 0, 0, border[0], border[1], 0, 0, 0, 0}) : x;
  Tensor sum;
  for (int64_t k = 0; k < kernel[0]; ++k) {
    const int64_t first = k * dilation[0];
    const Tensor met =
        slice_axis(bordered, 2, first, (depth - 1) * stride[0] + first + 1, stride[0]);
    const Tensor y =
        ops::conv2d(planes_of(met), slice_of_weight(w, k), {}, int_list({stride[1], stride[2]}),
                    int_list({border[2], border[3], border[4], border[5]}),
                    int_list({dilation[1], dilation[2]}), a.groups);
    sum = sum.defined() ? sum + y : y;
  }
  return {
      from_channels_first(with_bias(volume_of(sum, x.dim(0), depth), c.operand(2)), a.data_format)};
}
Tensors decompose_conv3d_transpose(CallContext& c) {
  const auto a = c.attrs_as<Conv3dTransposeAttrs>();
  const Tensor x = volume_operand(c, a.data_format);
  const Tensor& w = c.operand(1);
  const Op& op = c.op();
  const std::string name(op.name());
  const auto [kernel, stride, dilation] = window_of(name, w, a.stride, a.dilation);
  const auto extra = window_sizes(a.output_padding, 3, name + ": output_padding");
  const Axes border = transposed_padding(a.padding, {x.dim(2), x.dim(3), x.dim(4)}, kernel, stride,
                                         dilation, a.data_format == "NDHWC", name);
  if (extra[0] < 0 || extra[0] >= std::max(stride[0], dilation[0]))
    reject(op.name(), "output_padding ", extra[0], " must be below stride ", stride[0]);
  const Dim least =
      (x.dim(2) - 1) * stride[0] - border[0] - border[1] + (kernel[0] - 1) * dilation[0] + 1;
  Dim depth = least + extra[0];
  AttrValue plane_size;
  if (!a.output_size.is_none()) {
    const auto size = window_sizes(a.output_size, 3, name + ": output_size");
    depth = size[0];
    plane_size = int_list({size[1], size[2]});
    if (depth.less(least).value_or(false) || !depth.less(least + stride[0]).value_or(true))
      reject(op.name(), "output_size ", depth, " must lie in [", least, ", ", least + stride[0],
             ")");
  }
  if (depth.less(1).value_or(false)) reject(op.name(), "the result would be empty");
  // Each depth slice of the kernel adds its planes to the full result, which is then cropped.
  const Dim reach = (x.dim(2) - 1) * stride[0] + (kernel[0] - 1) * dilation[0] + 1;
  const Dim whole = maximum(reach, depth + border[0]);
  const Tensor planes = planes_of(x);
  Tensor sum;
  for (int64_t k = 0; k < kernel[0]; ++k) {
    const Tensor y = volume_of(
        ops::conv2d_transpose(planes, slice_of_weight(w, k), {}, int_list({stride[1], stride[2]}),
                              int_list({border[2], border[3], border[4], border[5]}),
                              int_list({extra[1], extra[2]}), int_list({dilation[1], dilation[2]}),
                              a.groups, plane_size),
        x.dim(0), x.dim(2));
    Shape shape = y.shape();
    shape[2] = whole;
    const int64_t first = k * dilation[0];
    const Tensor placed =
        ops::strided_slice_scatter(full_of(shape, 0, y.dtype()), y, {2}, {Dim(first)},
                                   {(x.dim(2) - 1) * stride[0] + first + 1}, {stride[0]});
    sum = sum.defined() ? sum + placed : placed;
  }
  if (!sum.defined()) reject(op.name(), "the kernel ", w.type(), " is empty");
  const Tensor cut = slice_axis(sum, 2, border[0], depth + border[0]);
  return {from_channels_first(with_bias(cut, c.operand(2)), a.data_format)};
}

}  // namespace paddle::rules
