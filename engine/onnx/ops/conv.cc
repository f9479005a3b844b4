// Convolutions.

#include "onnx/ops/conv.h"

#include <algorithm>
#include <numeric>

#include "onnx/ops/helpers.h"
#include "onnx/ops/window.h"
#include "ops/generated/creation.h"
#include "ops/generated/math.h"
#include "ops/generated/nn.h"
#include "ops/generated/shape.h"

namespace paddle::onnx {

Window conv_window(const NodeCall& c, const Tensor& x, const Tensor& weight) {
  const Dims kernel_shape = constant_shape(weight);
  c.check(kernel_shape.size() >= 3, "the weight must have a spatial axis at least");
  std::vector<int64_t> kernel(kernel_shape.begin() + 2, kernel_shape.end());
  const auto stated = c.ints_attr("kernel_shape", kernel);
  c.check(stated == kernel, "kernel_shape is ", str(stated), ", the weight is ", str(kernel_shape));
  return Window(c, x.shape(), kernel);
}

namespace {

Tensor convolved(const Tensor& x, const Tensor& weight, const Tensor& bias, const Window& w,
                 int64_t groups);

/// Most spatial axes; beyond three, a convolution is decomposed.
constexpr size_t kMaxAxes = 6;
constexpr int64_t kMaxSlices = 64;

/// Convolution over more than three axes: the kernel is split along the first spatial axis, and the
/// convolutions of its slices over the remaining axes are summed.
Tensor convolve_slices(const Tensor& x, const Tensor& weight, const Tensor& bias, const Window& w,
                       int64_t groups) {
  std::vector<size_t> others(w.rank() - 1);
  std::iota(others.begin(), others.end(), size_t{1});
  const Window rest = w.along(others);
  std::vector<int64_t> order;  // first spatial axis next to the batch
  for (int64_t i = 0; i < x.ndim(); ++i) order.push_back(i);
  std::swap(order[1], order[2]);
  const Tensor wide = pad_axis(ops::transpose(x, order), 1, w.before[0], w.after[0], "constant",
                               scalar(0, x.dtype()));
  const Dim count =
      floor_divide(wide.dim(1) - ((w.kernel[0] - 1) * w.dilation[0] + 1), w.stride[0]) + 1;
  Tensor sum;
  for (int64_t k = 0; k < w.kernel[0]; ++k) {
    const int64_t first = k * w.dilation[0];
    const Tensor met =
        slice_axis(wide, 1, first, (count - 1) * w.stride[0] + first + 1, w.stride[0]);
    Shape joined(met.shape().begin() + 1, met.shape().end());
    joined[0] = x.dim(0) * count;
    const Tensor slice = ops::squeeze(slice_axis(weight, 2, k, k + 1), std::vector<int64_t>{2});
    const Tensor y =
        convolved(ops::reshape(met, joined), slice, k == 0 ? bias : Tensor(), rest, groups);
    sum = sum ? sum + y : y;
  }
  Shape apart = sum.shape();
  apart[0] = count;
  apart.insert(apart.begin(), x.dim(0));
  return ops::transpose(ops::reshape(sum, apart), order);
}

Tensor convolved(const Tensor& x, const Tensor& weight, const Tensor& bias, const Window& w,
                 int64_t groups) {
  switch (w.rank()) {
    case 1:
      return ops::conv1d(x, weight, bias, w.stride, w.borders(), w.dilation, groups);
    case 2:
      return ops::conv2d(x, weight, bias, w.stride, w.borders(), w.dilation, groups);
    case 3:
      return ops::conv3d(x, weight, bias, w.stride, w.borders(), w.dilation, groups);
    default:
      return convolve_slices(x, weight, bias, w, groups);
  }
}

}  // namespace

Tensor convolve(const NodeCall& c, const Tensor& x, const Tensor& weight, const Tensor& bias) {
  const Window w = conv_window(c, x, weight);
  c.check(w.rank() <= kMaxAxes, "convolutions along ", w.rank(), " axes are not supported");
  int64_t slices = 1;
  for (size_t i = 0; i + 3 < w.rank(); ++i) {
    c.check(w.kernel[i] <= kMaxSlices / slices, "a kernel of this size along ", w.rank(),
            " axes is not supported");
    slices *= w.kernel[i];
  }
  return convolved(x, weight, bias, w, c.int_attr("group", 1));
}

namespace {

Values conv(NodeCall& c) { return {convolve(c, c.tensor(0), c.tensor(1), c.optional_tensor(2))}; }

constexpr int64_t kMaxOutputPadding = 1 << 24;

/// Whether conv1d_transpose or conv2d_transpose computes exactly what is asked for.
bool is_plain_transposed(const Window& w, const std::vector<int64_t>& extra) {
  if (w.rank() > 2) return false;
  for (size_t i = 0; i < w.rank(); ++i)
    if (w.before[i] < 0 || w.after[i] < 0 || extra[i] >= w.stride[i]) return false;
  return true;
}

Tensor plain_transposed(const Tensor& x, const Tensor& weight, const Tensor& bias, const Window& w,
                        const std::vector<int64_t>& extra, int64_t groups) {
  if (w.rank() == 1)
    return ops::conv1d_transpose(x, weight, bias, w.stride, w.borders(), extra, groups, w.dilation);
  return ops::conv2d_transpose(x, weight, bias, w.stride, w.borders(), extra, w.dilation, groups);
}

Tensor whole_transposed(const NodeCall& c, const Tensor& x, const Tensor& weight, const Window& w,
                        int64_t groups) {
  switch (w.rank()) {
    case 1:
      return ops::conv1d_transpose(x, weight, {}, w.stride, 0, 0, groups, w.dilation);
    case 2:
      return ops::conv2d_transpose(x, weight, {}, w.stride, 0, 0, w.dilation, groups);
    case 3:
      return ops::conv3d_transpose(x, weight, {}, w.stride, 0, 0, groups, w.dilation);
    default:
      c.reject("transposed convolutions of ", w.rank(), " axes are not supported");
  }
}

/// Depthwise causal convolution; the last inputs are the state for the next call.
Values causal_conv_with_state(NodeCall& c) {
  for (const char* name : {"state_window", "state_length", "input_channels", "input_channel_offset",
                           "state_update_capacity"})
    c.check(c.int_attr(name, 0) == 0, "the attribute '", name, "' is not supported");
  c.check(c.int_attr("state_channels_last", -1) == -1, "state_channels_last is not supported");
  c.check(c.int_attr("ndim", 1) == 1, "ndim must be 1");
  const bool channels_last = c.bool_attr("channels_last", false);
  const Tensor &given = c.tensor(0), &weight = c.tensor(1);
  c.check(given.ndim() >= 3 && (channels_last || given.ndim() == 3) && weight.ndim() == 3,
          "the input is ", given.type(), " and the weight ", weight.type());
  const int64_t taps = constant_dim(weight, 2), step = c.int_attr("dilation", 1);
  c.check(taps >= 1 && step >= 1 && step <= (int64_t{1} << 31) / taps, "dilation is ", step,
          " for a kernel of ", taps);
  // [batch, steps, channels...] to [batch, channels, steps].
  const auto first = [&](const Tensor& t) {
    if (!channels_last) return t;
    return ops::transpose(ops::reshape(t, {t.dim(0), t.dim(1), weight.dim(0)}), {0, 2, 1});
  };
  const auto back = [&](const Tensor& t) {
    if (!channels_last) return t;
    Shape shape = given.shape();
    shape[1] = t.dim(2);
    return ops::reshape(ops::transpose(t, {0, 2, 1}), shape);
  };
  const Tensor x = first(given);
  const Dim before((taps - 1) * step);
  const Tensor past =
      c.has_input(3) ? first(c.tensor(3)) : ops::full({x.dim(0), x.dim(1), before}, 0.0, x.dtype());
  c.check(past.ndim() == 3 && past.dim(2).equals(before).value_or(true), "past_state is ",
          past.type(), " where ", before, " steps are kept");
  const Tensor all = ops::concat({past, x}, 2);
  Tensor y = compute_in_float32(all, [&](const Tensor& wide) {
    const auto as = [&](const Tensor& t) { return t ? ops::cast(t, wide.dtype()) : t; };
    return ops::conv1d(wide, as(weight), as(c.optional_tensor(2)), 1, 0, step,
                       constant_dim(weight, 0));
  });
  const std::string activation = c.string_attr("activation", "none");
  if (activation == "silu" || activation == "swish") y = ops::silu(y);
  return {back(y), back(slice_axis(all, 2, all.dim(2) - before, all.dim(2)))};
}

}  // namespace

/// Results of other sizes are computed without padding, then cropped or padded as the attributes
/// require.
Values conv_transpose_rule(NodeCall& c) {
  c.check_same_dtype({0, 1, 2});
  const Tensor &x = c.tensor(0), &weight = c.tensor(1);
  const Dims kernel_shape = constant_shape(weight);
  c.check(kernel_shape.size() >= 3, "the weight is ", weight.type(),
          ", its rank must be 3 or more");
  c.check(kernel_shape.size() == x.shape().size(), "the input is ", x.type(), ", the weight ",
          weight.type());
  const size_t n = kernel_shape.size() - 2;
  auto extra = c.ints_attr("output_padding");
  if (extra.empty()) extra.assign(n, 0);
  c.check(extra.size() == n, "output_padding must have ", n, " elements");
  for (const int64_t size : extra)
    c.check(size >= 0 && size <= kMaxOutputPadding, "output_padding must be from 0 to ",
            kMaxOutputPadding, ", not ", size);
  const Window w = Window::transposed(c, {kernel_shape.begin() + 2, kernel_shape.end()}, extra);
  const auto wanted = c.ints_attr("output_shape");
  c.check(wanted.empty() || wanted.size() >= n, "output_shape must have ", n, " elements");
  if (wanted.empty() && is_plain_transposed(w, extra))
    return {plain_transposed(x, weight, c.optional_tensor(2), w, extra, c.int_attr("group", 1))};
  Tensor y = whole_transposed(c, x, weight, w, c.int_attr("group", 1));
  for (size_t i = 0; i < n; ++i) {
    const auto axis = static_cast<int64_t>(i) + 2;
    const Dim full = y.dim(axis);
    Dim begin = w.before[i], end = full - w.after[i] + extra[i];
    if (!wanted.empty()) {
      const Dim size = wanted[wanted.size() - n + i];
      const Dim total = full + extra[i] - size;
      const Dim half = floor_divide(total, 2);
      begin = c.string_attr("auto_pad", "NOTSET") == "SAME_UPPER" ? half : total - half;
      if (begin.less(0).value_or(false)) begin = 0;
      end = begin + size;
    }
    const Dim missing = maximum(0, end - full);
    if (!(missing.is_constant() && missing.value() == 0)) {
      Shape shape = y.shape();
      shape[static_cast<size_t>(axis)] = missing;
      y = ops::concat({y, ops::full(shape, 0.0, y.dtype())}, axis);
    }
    if (!begin.equals(0).value_or(false) || !end.equals(y.dim(axis)).value_or(false))
      y = slice_axis(y, axis, begin, end);
  }
  if (c.has_input(2)) {
    Shape shape(static_cast<size_t>(y.ndim()), Dim(1));
    shape[1] = c.tensor(2).dim(0);
    y = y + ops::reshape(c.tensor(2), shape);
  }
  return {y};
}

OperatorTable conv_operators() {
  static constexpr Operator operators[] = {
      {"Conv", 1, conv},
      {"ConvTranspose", 1, conv_transpose_rule},
      {"CausalConvWithState", 1, causal_conv_with_state},
  };
  return operators;
}

}  // namespace paddle::onnx
