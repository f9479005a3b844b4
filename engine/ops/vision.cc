// Rules of schema/vision.yaml: convolutions and pooling in other forms.

#include <algorithm>

#include "ops/generated/attrs.h"
#include "ops/generated/rules.h"
#include "ops/vision.h"
#include "ops/window.h"

namespace paddle::rules {

void check_rank(const char* op, const Tensor& x, int64_t rank) {
  if (x.ndim() != rank) refuse(op, "x must have ", rank, " dimensions, not ", x.type());
}

bool channels_last(const std::string& format) { return format.size() > 2 && format.back() == 'C'; }

Tensor first_channels(const Tensor& x) {
  Axes perm = {0, x.ndim() - 1};
  for (int64_t i = 1; i + 1 < x.ndim(); ++i) perm.push_back(i);
  return ops::transpose(x, perm);
}
Tensor last_channels(const Tensor& x) {
  Axes perm = {0};
  for (int64_t i = 2; i < x.ndim(); ++i) perm.push_back(i);
  perm.push_back(1);
  return ops::transpose(x, perm);
}

Tensor per_channel(const Tensor& v, int64_t rank, bool last) {
  Shape shape(static_cast<size_t>(rank), Dim(1));
  shape[last ? shape.size() - 1 : 1] = -1;
  return ops::reshape(v, shape);
}

Tensor map_axis(const Tensor& x, int64_t axis, const std::vector<double>& matrix, int64_t out,
                int64_t in) {
  const Tensor weights = ops::cast(Tensor(Array::from(matrix, {out, in})), x.dtype());
  Axes perm, back(x.shape().size());
  for (int64_t i = 0; i < x.ndim(); ++i)
    if (i != axis) perm.push_back(i);
  perm.push_back(axis);
  for (size_t i = 0; i < perm.size(); ++i)
    back[static_cast<size_t>(perm[i])] = static_cast<int64_t>(i);
  const bool last = axis + 1 == x.ndim();
  const Tensor mapped = ops::matmul(last ? x : ops::transpose(x, perm), weights, false, true);
  return last ? mapped : ops::transpose(mapped, back);
}

namespace {

AttrValue pair_of(int64_t a, int64_t b) { return AttrValue(std::vector<int64_t>{a, b}); }

/// 1-D windows as 2-D ones of height 1: the same attributes with a leading 1 or 0.
AttrValue beside_one(const AttrValue& value, const char* what) {
  return pair_of(1, window_sizes(value, 1, what)[0]);
}

/// Padding of a 1-D operation for its 2-D form, [0, 0, before, after].
AttrValue line_padding(const AttrValue& padding, const Tensor& x, int64_t axis, int64_t kernel,
                       int64_t stride, int64_t dilation, bool last, const char* what) {
  const auto p = window_padding(padding, {x.dim(axis)}, {kernel}, {stride}, {dilation}, last, what);
  return AttrValue(std::vector<int64_t>{0, 0, p[0], p[1]});
}

/// Sizes of an adaptive result; none keeps an axis.
std::vector<int64_t> output_sizes(const char* op, const AttrValue& value, const Tensor& x,
                                  int64_t first, size_t n) {
  std::vector<int64_t> out;
  if (value.is_list() && value.as_list().size() != n && value.as_list().size() != 1)
    refuse(op, "output_size must be a number or ", n, ", not ", value);
  for (size_t i = 0; i < n; ++i) {
    const AttrValue& each =
        value.is_list() ? value.as_list().at(value.as_list().size() == n ? i : 0) : value;
    const int64_t size =
        each.is_none() ? x.dim(first + static_cast<int64_t>(i)).value() : each.as_int();
    if (size < 1) refuse(op, "output_size must be positive, not ", size);
    out.push_back(size);
  }
  return out;
}

Tensor adaptive_mean(const char* op, Tensor x, const AttrValue& size, int64_t first, size_t n) {
  const auto out = output_sizes(op, size, x, first, n);
  if (n == 2) {
    const int64_t rows = x.dim(first).value(), columns = x.dim(first + 1).value();
    if (is_float(x.dtype()) && rows > 0 && columns > 0 && rows % out[0] == 0 &&
        columns % out[1] == 0)
      return ops::avg_pool2d(x, pair_of(rows / out[0], columns / out[1]), {}, 0, false, true, {},
                             first == 1 ? "NHWC" : "NCHW");
  }
  for (size_t i = 0; i < n; ++i) {
    const int64_t axis = first + static_cast<int64_t>(i), in = x.dim(axis).value();
    std::vector<double> matrix(static_cast<size_t>(out[i] * in), 0.0);
    for (int64_t o = 0; o < out[i]; ++o) {
      const int64_t begin = o * in / out[i], end = ((o + 1) * in + out[i] - 1) / out[i];
      for (int64_t k = begin; k < end; ++k)
        matrix[static_cast<size_t>(o * in + k)] = 1.0 / static_cast<double>(end - begin);
    }
    x = map_axis(x, axis, matrix, out[i], in);
  }
  return x;
}

/// Adaptive max pooling of [n, c, rows, columns] with the indices of the maxima.
Tensors adaptive_max(const char* op, const Tensor& x, const std::vector<int64_t>& out) {
  const int64_t rows = x.dim(2).value(), columns = x.dim(3).value();
  if (rows % out[0] == 0 && columns % out[1] == 0)
    return ops::max_pool2d(x, pair_of(rows / out[0], columns / out[1]));
  if (out[0] * out[1] > 4096) refuse(op, "uneven windows are offered for at most 4096 of them");
  Tensors values, places;
  for (int64_t i = 0; i < out[0]; ++i)
    for (int64_t j = 0; j < out[1]; ++j) {
      const int64_t top = i * rows / out[0], bottom = ((i + 1) * rows + out[0] - 1) / out[0];
      const int64_t left = j * columns / out[1], right = ((j + 1) * columns + out[1] - 1) / out[1];
      const Tensor window = slice_axis(slice_axis(x, 2, top, bottom), 3, left, right);
      const Tensor flat =
          ops::reshape(window, {x.dim(0), x.dim(1), Dim((bottom - top) * (right - left))});
      const Tensor at = ops::argmax(flat, 2, true);
      values.push_back(ops::gather_along(flat, at, 2));
      const Tensor width = Tensor::number(right - left);
      const Tensor row = ops::floor_divide(at, width) + Tensor::number(top);
      const Tensor column = ops::remainder(at, width) + Tensor::number(left);
      places.push_back(ops::cast(row * Tensor::number(columns) + column, DType::kI32));
    }
  const Shape shape = {x.dim(0), x.dim(1), Dim(out[0]), Dim(out[1])};
  return {ops::reshape(ops::concat(values, 2), shape), ops::reshape(ops::concat(places, 2), shape)};
}

}  // namespace

// --- convolutions ---

Tensors decompose_conv1d(CallContext& c) {
  const auto a = c.attrs_as<Conv1dAttrs>();
  const Tensor &x = c.operand(0), &w = c.operand(1);
  check_rank("conv1d", x, 3);
  if (w.ndim() != 3) refuse("conv1d", "weight must have 3 dimensions, not ", w.type());
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
  if (w.ndim() != 4) refuse(op, "weight must have 4 dimensions, not ", w.type());
  const bool last = a.data_format == "NHWC";
  const int64_t first = last ? 1 : 2, channel = last ? 3 : 1;
  if (x.dim(channel).equals(w.dim(0)) == false)
    refuse(op, "x has ", x.dim(channel), " channels, weight ", w.type(), " takes ", w.dim(0));
  if (a.groups < 1 || modulo(w.dim(0), a.groups).constant().value_or(0) != 0)
    refuse(op, w.dim(0), " channels do not divide into ", a.groups, " groups");
  const auto stride = window_sizes(a.stride, 2, "conv2d_transpose: stride");
  const auto dilation = window_sizes(a.dilation, 2, "conv2d_transpose: dilation");
  const auto extra = window_sizes(a.output_padding, 2, "conv2d_transpose: output_padding");
  const Axes kernel = {w.dim(2).value(), w.dim(3).value()};
  Axes padding(4, 0);
  if (a.padding.is_string() &&
      (a.padding.as_string() == "SAME" || a.padding.as_string() == "same")) {
    for (size_t i = 0; i < 2; ++i) {
      // As for a convolution of x itself: ceil(size / stride) windows.
      const Dim size = x.dim(first + static_cast<int64_t>(i));
      if (!size.is_constant()) refuse(op, "padding SAME needs a known size, not ", size);
      const int64_t covered = ((size.value() + stride[i] - 1) / stride[i] - 1) * stride[i];
      const int64_t total =
          std::max<int64_t>(0, covered + (kernel[i] - 1) * dilation[i] + 1 - size.value());
      padding[2 * i] = total / 2;
      padding[2 * i + 1] = total - total / 2;
    }
  } else {
    padding = window_padding(a.padding, {x.dim(first), x.dim(first + 1)}, kernel, {1, 1}, dilation,
                             last, op);
  }
  Shape shape = x.shape();
  shape[static_cast<size_t>(channel)] = w.dim(1) * a.groups;
  std::vector<int64_t> wanted;
  if (!a.output_size.is_none())
    wanted = window_sizes(a.output_size, 2, "conv2d_transpose: output_size");
  for (size_t i = 0; i < 2; ++i) {
    if (stride[i] < 1 || dilation[i] < 1) refuse(op, "stride and dilation must be positive");
    if (extra[i] < 0 || extra[i] >= std::max(stride[i], dilation[i]))
      refuse(op, "output_padding ", extra[i], " must be below stride ", stride[i]);
    Dim& d = shape[static_cast<size_t>(first) + i];
    const Dim least = (d - 1) * stride[i] - padding[2 * i] - padding[2 * i + 1] +
                      (kernel[i] - 1) * dilation[i] + 1;
    if (!wanted.empty() && (Dim(wanted[i]).less(least).value_or(false) ||
                            !Dim(wanted[i]).less(least + stride[i]).value_or(true)))
      refuse(op, "output_size ", wanted[i], " must lie in [", least, ", ", least + stride[i], ")");
    d = wanted.empty() ? least + extra[i] : Dim(wanted[i]);
    if (d.less(1).value_or(false)) refuse(op, "the result would be empty");
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
  if (w.ndim() != 3) refuse("conv1d_transpose", "weight must have 3 dimensions, not ", w.type());
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

// --- pooling ---

Tensors decompose_max_pool1d(CallContext& c) {
  const auto a = c.attrs_as<MaxPool1dAttrs>();
  const Tensor& x = c.operand(0);
  check_rank("max_pool1d", x, 3);
  const int64_t kernel = window_sizes(a.kernel_size, 1, "max_pool1d: kernel_size")[0];
  const int64_t stride =
      a.stride.is_none() ? kernel : window_sizes(a.stride, 1, "max_pool1d: stride")[0];
  const Tensors pooled = ops::max_pool2d(
      ops::unsqueeze(x, {2}), pair_of(1, kernel), pair_of(1, stride),
      line_padding(a.padding, x, 2, kernel, stride, 1, false, "max_pool1d"), true, a.ceil_mode);
  Tensors out = {ops::squeeze(pooled[0], Axes{2})};
  if (a.return_mask) out.push_back(ops::squeeze(pooled[1], Axes{2}));
  return out;
}

Tensors decompose_avg_pool1d(CallContext& c) {
  const auto a = c.attrs_as<AvgPool1dAttrs>();
  const Tensor& x = c.operand(0);
  check_rank("avg_pool1d", x, 3);
  const int64_t kernel = window_sizes(a.kernel_size, 1, "avg_pool1d: kernel_size")[0];
  const int64_t stride =
      a.stride.is_none() ? kernel : window_sizes(a.stride, 1, "avg_pool1d: stride")[0];
  const Tensor pooled =
      ops::avg_pool2d(ops::unsqueeze(x, {2}), pair_of(1, kernel), pair_of(1, stride),
                      line_padding(a.padding, x, 2, kernel, stride, 1, false, "avg_pool1d"),
                      a.ceil_mode, a.exclusive);
  return {ops::squeeze(pooled, Axes{2})};
}

Tensors decompose_adaptive_avg_pool1d(CallContext& c) {
  check_rank("adaptive_avg_pool1d", c.operand(0), 3);
  return {adaptive_mean("adaptive_avg_pool1d", c.operand(0),
                        c.attrs_as<AdaptiveAvgPool1dAttrs>().output_size, 2, 1)};
}

Tensors decompose_adaptive_avg_pool2d(CallContext& c) {
  const auto a = c.attrs_as<AdaptiveAvgPool2dAttrs>();
  check_rank("adaptive_avg_pool2d", c.operand(0), 4);
  return {adaptive_mean("adaptive_avg_pool2d", c.operand(0), a.output_size,
                        a.data_format == "NHWC" ? 1 : 2, 2)};
}

Tensors decompose_adaptive_max_pool1d(CallContext& c) {
  const auto a = c.attrs_as<AdaptiveMaxPool1dAttrs>();
  check_rank("adaptive_max_pool1d", c.operand(0), 3);
  const auto size = output_sizes("adaptive_max_pool1d", a.output_size, c.operand(0), 2, 1);
  const Tensors pooled =
      adaptive_max("adaptive_max_pool1d", ops::unsqueeze(c.operand(0), {2}), {1, size[0]});
  Tensors out = {ops::squeeze(pooled[0], Axes{2})};
  if (a.return_mask) out.push_back(ops::squeeze(pooled[1], Axes{2}));
  return out;
}

Tensors decompose_adaptive_max_pool2d(CallContext& c) {
  const auto a = c.attrs_as<AdaptiveMaxPool2dAttrs>();
  check_rank("adaptive_max_pool2d", c.operand(0), 4);
  Tensors out =
      adaptive_max("adaptive_max_pool2d", c.operand(0),
                   output_sizes("adaptive_max_pool2d", a.output_size, c.operand(0), 2, 2));
  if (!a.return_mask) out.resize(1);
  return out;
}

}  // namespace paddle::rules
