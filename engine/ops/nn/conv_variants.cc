// Rules of conv.yaml: 1-D and transposed convolutions in terms of conv2d.

#include <algorithm>

#include "ops/generated/nn.h"
#include "ops/generated/nn_rules.h"
#include "ops/generated/shape.h"
#include "ops/nn/channels.h"
#include "ops/nn/window.h"

namespace paddle::rules {
namespace {

/// 1-D windows as 2-D ones of height 1: the same attributes with a leading 1 or 0.
AttrValue beside_one(const AttrValue& value, const char* what) {
  return pair_of(1, window_sizes(value, 1, what)[0]);
}

}  // namespace

Tensors decompose_conv1d(CallContext& c) {
  const auto a = c.attrs_as<Conv1dAttrs>();
  const Tensor &x = c.operand(0), &w = c.operand(1);
  check_rank("conv1d", x, 3);
  if (w.ndim() != 3) reject("conv1d", "weight must have 3 dimensions, not ", w.type());
  const bool last = a.data_format == "NLC";
  const int64_t stride = window_sizes(a.stride, 1, "conv1d: stride")[0];
  const int64_t dilation = window_sizes(a.dilation, 1, "conv1d: dilation")[0];
  const AttrValue padding =
      line_padding(a.padding, x, last ? 1 : 2, w.dim(2).value(), stride, dilation, last, "conv1d");
  const Tensor y = ops::conv2d(ops::unsqueeze(x, {last ? 1 : 2}), ops::unsqueeze(w, {2}),
                               c.operand(2), pair_of(1, stride), padding, pair_of(1, dilation),
                               a.groups, last ? "NHWC" : "NCHW");
  return {ops::squeeze(y, Axes{last ? 1 : 2})};
}

Tensors decompose_conv2d_transpose(CallContext& c) {
  const auto a = c.attrs_as<Conv2dTransposeAttrs>();
  const Tensor &x = c.operand(0), &w = c.operand(1);
  const char* op = "conv2d_transpose";
  check_rank(op, x, 4);
  if (w.ndim() != 4) reject(op, "weight must have 4 dimensions, not ", w.type());
  const bool last = a.data_format == "NHWC";
  const int64_t first = last ? 1 : 2, channel = last ? 3 : 1;
  if (x.dim(channel).equals(w.dim(0)) == false)
    reject(op, "x has ", x.dim(channel), " channels, weight ", w.type(), " takes ", w.dim(0));
  if (a.groups < 1 || modulo(w.dim(0), a.groups).constant().value_or(0) != 0)
    reject(op, w.dim(0), " channels do not divide into ", a.groups, " groups");
  const auto stride = window_sizes(a.stride, 2, "conv2d_transpose: stride");
  const auto dilation = window_sizes(a.dilation, 2, "conv2d_transpose: dilation");
  const auto extra = window_sizes(a.output_padding, 2, "conv2d_transpose: output_padding");
  const Axes kernel = {w.dim(2).value(), w.dim(3).value()};
  const Axes padding = transposed_padding(a.padding, {x.dim(first), x.dim(first + 1)}, kernel,
                                          stride, dilation, last, op);
  Shape shape = x.shape();
  shape[static_cast<size_t>(channel)] = w.dim(1) * a.groups;
  std::vector<int64_t> wanted;
  if (!a.output_size.is_none())
    wanted = window_sizes(a.output_size, 2, "conv2d_transpose: output_size");
  for (size_t i = 0; i < 2; ++i) {
    if (extra[i] < 0 || extra[i] >= std::max(stride[i], dilation[i]))
      reject(op, "output_padding ", extra[i], " must be below stride ", stride[i]);
    Dim& d = shape[static_cast<size_t>(first) + i];
    const Dim least = (d - 1) * stride[i] - padding[2 * i] - padding[2 * i + 1] +
                      (kernel[i] - 1) * dilation[i] + 1;
    if (!wanted.empty() && (Dim(wanted[i]).less(least).value_or(false) ||
                            !Dim(wanted[i]).less(least + stride[i]).value_or(true)))
      reject(op, "output_size ", wanted[i], " must lie in [", least, ", ", least + stride[i], ")");
    d = wanted.empty() ? least + extra[i] : Dim(wanted[i]);
    if (d.less(1).value_or(false)) reject(op, "the result would be empty");
  }
  Tensor y =
      ops::conv2d_input_grad(w, x, shape, stride, padding, dilation, a.groups, a.data_format);
  if (c.has(2)) y = y + per_channel(c.operand(2), 4, last);
  return {y};
}

Tensors decompose_conv1d_transpose(CallContext& c) {
  const auto a = c.attrs_as<Conv1dTransposeAttrs>();
  const Tensor &x = c.operand(0), &w = c.operand(1);
  check_rank("conv1d_transpose", x, 3);
  if (w.ndim() != 3) reject("conv1d_transpose", "weight must have 3 dimensions, not ", w.type());
  const bool last = a.data_format == "NLC";
  AttrValue padding = a.padding;
  if (!padding.is_string())
    padding =
        line_padding(a.padding, x, last ? 1 : 2, w.dim(2).value(), 1, 1, last, "conv1d_transpose");
  const int64_t extra = window_sizes(a.output_padding, 1, "conv1d_transpose: output_padding")[0];
  AttrValue size;
  if (!a.output_size.is_none()) size = beside_one(a.output_size, "conv1d_transpose: output_size");
  const Tensor y = ops::conv2d_transpose(
      ops::unsqueeze(x, {last ? 1 : 2}), ops::unsqueeze(w, {2}), c.operand(2),
      beside_one(a.stride, "conv1d_transpose: stride"), padding, pair_of(0, extra),
      beside_one(a.dilation, "conv1d_transpose: dilation"), a.groups, size, last ? "NHWC" : "NCHW");
  return {ops::squeeze(y, Axes{last ? 1 : 2})};
}

}  // namespace paddle::rules
