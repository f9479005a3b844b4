// Rules of schema/vision.yaml.

#include <algorithm>
#include <cmath>
#include <functional>

#include "ops/generated/attrs.h"
#include "ops/generated/rules.h"
#include "ops/operators.h"
#include "ops/window.h"

namespace paddle::rules {
namespace {

using Axes = std::vector<int64_t>;

template <class... Parts>
[[noreturn]] void refuse(const char* op, const Parts&... parts) {
  fail(ErrorCode::kUsage, op, ": ", parts...);
}

void check_rank(const char* op, const Tensor& x, int64_t rank) {
  if (x.ndim() != rank) refuse(op, "x must have ", rank, " dimensions, not ", x.type());
}

Tensor part(const Tensor& x, int64_t axis, const Dim& start, const Dim& end, int64_t stride = 1) {
  return ops::strided_slice(x, {axis}, {start}, {end}, {stride});
}

AttrValue pair_of(int64_t a, int64_t b) { return AttrValue(std::vector<int64_t>{a, b}); }

/// 1-D windows as 2-D ones of height 1: the same attributes with a leading 1 or 0.
AttrValue beside_one(const AttrValue& value, const char* what) {
  return pair_of(1, window_numbers(value, 1, what)[0]);
}

/// Padding of a 1-D operation for its 2-D form, [0, 0, before, after].
AttrValue line_padding(const AttrValue& padding, const Tensor& x, int64_t axis, int64_t kernel,
                       int64_t stride, int64_t dilation, bool last, const char* what) {
  const auto p = window_padding(padding, {x.dim(axis)}, {kernel}, {stride}, {dilation}, last, what);
  return AttrValue(std::vector<int64_t>{0, 0, p[0], p[1]});
}

Tensor per_channel(const Tensor& v, int64_t rank, bool last) {
  Shape shape(static_cast<size_t>(rank), Dim(1));
  shape[last ? shape.size() - 1 : 1] = -1;
  return ops::reshape(v, shape);
}

bool channels_last(const std::string& format) { return format.size() > 2 && format.back() == 'C'; }

/// Channels to axis 1, and back.
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

/// A linear map along an axis: matrix is [out, in].
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

/// Largest elements of windows that divide the planes of [n, c, rows, columns], and their places.
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
      const Tensor window = part(part(x, 2, top, bottom), 3, left, right);
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

// ---- convolutions
// --------------------------------------------------------------------------------

Tensors decompose_conv1d(CallContext& c) {
  const auto a = c.attrs_as<Conv1dAttrs>();
  const Tensor &x = c.operand(0), &w = c.operand(1);
  check_rank("conv1d", x, 3);
  if (w.ndim() != 3) refuse("conv1d", "weight must have 3 dimensions, not ", w.type());
  const bool last = a.data_format == "NLC";
  const int64_t stride = window_numbers(a.stride, 1, "conv1d: stride")[0];
  const int64_t dilation = window_numbers(a.dilation, 1, "conv1d: dilation")[0];
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
  const auto stride = window_numbers(a.stride, 2, "conv2d_transpose: stride");
  const auto dilation = window_numbers(a.dilation, 2, "conv2d_transpose: dilation");
  const auto extra = window_numbers(a.output_padding, 2, "conv2d_transpose: output_padding");
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
    wanted = window_numbers(a.output_size, 2, "conv2d_transpose: output_size");
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
  const int64_t extra = window_numbers(a.output_padding, 1, "conv1d_transpose: output_padding")[0];
  AttrValue size;
  if (!a.output_size.is_none()) size = beside_one(a.output_size, "conv1d_transpose: output_size");
  const Tensor y = ops::conv2d_transpose(
      ops::unsqueeze(x, {last ? 1 : 2}), ops::unsqueeze(w, {2}), c.operand(2),
      beside_one(a.stride, "conv1d_transpose: stride"), padding, pair_of(0, extra),
      beside_one(a.dilation, "conv1d_transpose: dilation"), a.groups, size, last ? "NHWC" : "NCHW");
  return {ops::squeeze(y, Axes{last ? 1 : 2})};
}

// ---- pooling
// -------------------------------------------------------------------------------------

Tensors decompose_max_pool1d(CallContext& c) {
  const auto a = c.attrs_as<MaxPool1dAttrs>();
  const Tensor& x = c.operand(0);
  check_rank("max_pool1d", x, 3);
  const int64_t kernel = window_numbers(a.kernel_size, 1, "max_pool1d: kernel_size")[0];
  const int64_t stride =
      a.stride.is_none() ? kernel : window_numbers(a.stride, 1, "max_pool1d: stride")[0];
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
  const int64_t kernel = window_numbers(a.kernel_size, 1, "avg_pool1d: kernel_size")[0];
  const int64_t stride =
      a.stride.is_none() ? kernel : window_numbers(a.stride, 1, "avg_pool1d: stride")[0];
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

// ---- normalisation
// -------------------------------------------------------------------------------

namespace {

/// Groups of channels to mean 0 and variance 1, then an affine map per channel.
Tensor normalised_groups(const char* op, const Tensor& given, int64_t groups, double epsilon,
                         const Tensor& weight, const Tensor& bias, const std::string& format) {
  if (given.ndim() < 2) refuse(op, "x must have at least 2 dimensions, not ", given.type());
  const bool last = given.ndim() > 2 && channels_last(format);
  const Tensor x = last ? first_channels(given) : given;
  const Dim channels = x.dim(1);
  if (groups < 1 || modulo(channels, groups).constant().value_or(0) != 0)
    refuse(op, channels, " channels do not divide into ", groups, " groups");
  for (const Tensor& t : {weight, bias})
    if (t.defined() &&
        (t.ndim() > 1 || element_count(std::span<const Dim>(t.shape())).equals(channels) == false))
      refuse(op, "weight and bias must be [", channels, "], not ", t.type());
  Dim each = floor_divide(channels, groups);
  for (int64_t i = 2; i < x.ndim(); ++i) each = each * x.dim(i);
  const Tensor rows = ops::reshape(x, {x.dim(0), Dim(groups), each});
  Tensor y = ops::reshape(ops::layer_norm(rows, AttrValue(std::vector<Dim>{each}), {}, {}, epsilon),
                          x.shape());
  if (weight.defined()) y = y * ops::cast(per_channel(weight, x.ndim(), false), y.dtype());
  if (bias.defined()) y = y + ops::cast(per_channel(bias, x.ndim(), false), y.dtype());
  return last ? last_channels(y) : y;
}

}  // namespace

Tensors decompose_group_norm(CallContext& c) {
  const auto a = c.attrs_as<GroupNormAttrs>();
  return {normalised_groups("group_norm", c.operand(0), a.num_groups, a.epsilon, c.operand(1),
                            c.operand(2), a.data_format)};
}

Tensors decompose_instance_norm(CallContext& c) {
  const auto a = c.attrs_as<InstanceNormAttrs>();
  const Tensor& x = c.operand(0);
  if (x.ndim() < 2) refuse("instance_norm", "x must have at least 2 dimensions, not ", x.type());
  const bool last = x.ndim() > 2 && channels_last(a.data_format);
  if (!a.use_input_stats && c.has(1) && c.has(2)) {
    const Tensor mean = per_channel(c.operand(1), x.ndim(), last),
                 variance = per_channel(c.operand(2), x.ndim(), last);
    Tensor y = (x - mean) * ops::rsqrt(variance + a.eps);
    if (c.has(3)) y = y * per_channel(c.operand(3), x.ndim(), last);
    if (c.has(4)) y = y + per_channel(c.operand(4), x.ndim(), last);
    return {y};
  }
  return {normalised_groups("instance_norm", x, x.dim(last ? -1 : 1).value(), a.eps, c.operand(3),
                            c.operand(4), a.data_format)};
}

Tensors decompose_rms_norm(CallContext& c) {
  const auto a = c.attrs_as<RmsNormAttrs>();
  const Tensor& given = c.operand(0);
  const auto count =
      static_cast<int64_t>(a.normalized_shape.is_list() ? a.normalized_shape.as_list().size() : 1);
  if (count < 1 || count > given.ndim())
    refuse("rms_norm", "cannot normalise ", count, " axes of ", given.type());
  const auto sizes = a.normalized_shape.as_dims();
  for (int64_t i = 0; i < count; ++i)
    if (given.dim(i - count).equals(sizes[static_cast<size_t>(i)]) == false)
      refuse("rms_norm", "normalized_shape ", a.normalized_shape, " is not the end of ",
             given.type());
  const bool narrow = given.dtype() == DType::kF16 || given.dtype() == DType::kBF16;
  const Tensor x = narrow ? ops::cast(given, DType::kF32) : given;
  Axes axes;
  for (int64_t i = x.ndim() - count; i < x.ndim(); ++i) axes.push_back(i);
  Tensor y = x * ops::rsqrt(ops::mean(ops::square(x), axes, true) + a.eps);
  if (narrow) y = ops::cast(y, given.dtype());
  if (c.has(1)) {
    const Shape shape(x.shape().end() - static_cast<ptrdiff_t>(count), x.shape().end());
    y = y * ops::reshape(c.operand(1), shape);
  }
  return {y};
}

Tensors decompose_local_response_norm(CallContext& c) {
  const auto a = c.attrs_as<LocalResponseNormAttrs>();
  const Tensor& x = c.operand(0);
  if (x.ndim() < 3)
    refuse("local_response_norm", "x must have at least 3 dimensions, not ", x.type());
  if (a.size < 1) refuse("local_response_norm", "size must be positive, not ", a.size);
  const int64_t axis = channels_last(a.data_format) ? x.ndim() - 1 : 1;
  std::vector<int64_t> border(static_cast<size_t>(2 * x.ndim()), 0);
  border[static_cast<size_t>(2 * axis)] = a.size / 2;
  border[static_cast<size_t>(2 * axis + 1)] = (a.size - 1) / 2;
  const Tensor squares = ops::pad(ops::square(x), border);
  Tensor sum;
  for (int64_t i = 0; i < a.size; ++i) {
    const Tensor moved = part(squares, axis, i, x.dim(axis) + i);
    sum = sum.defined() ? sum + moved : moved;
  }
  return {x /
          ops::pow(sum * (a.alpha / static_cast<double>(a.size)) + a.k, Tensor::number(a.beta))};
}

// ---- rearranging pixels
// --------------------------------------------------------------------------

namespace {

Tensor in_channels_first(const Tensor& x, const std::string& format,
                         const std::function<Tensor(const Tensor&)>& f) {
  return format == "NHWC" ? last_channels(f(first_channels(x))) : f(x);
}

Dim divided(const char* op, const Dim& d, int64_t by) {
  if (by < 1 || modulo(d, by).constant().value_or(0) != 0)
    refuse(op, d, " does not divide by ", by);
  return floor_divide(d, by);
}

}  // namespace

Tensors decompose_pixel_shuffle(CallContext& c) {
  const auto a = c.attrs_as<PixelShuffleAttrs>();
  const int64_t r = a.upscale_factor;
  check_rank("pixel_shuffle", c.operand(0), 4);
  return {in_channels_first(c.operand(0), a.data_format, [&](const Tensor& x) {
    const Dim channels = divided("pixel_shuffle", x.dim(1), r * r);
    const Tensor apart = ops::reshape(x, {x.dim(0), channels, Dim(r), Dim(r), x.dim(2), x.dim(3)});
    return ops::reshape(ops::transpose(apart, {0, 1, 4, 2, 5, 3}),
                        {x.dim(0), channels, x.dim(2) * r, x.dim(3) * r});
  })};
}

Tensors decompose_pixel_unshuffle(CallContext& c) {
  const auto a = c.attrs_as<PixelUnshuffleAttrs>();
  const int64_t r = a.downscale_factor;
  check_rank("pixel_unshuffle", c.operand(0), 4);
  return {in_channels_first(c.operand(0), a.data_format, [&](const Tensor& x) {
    const Dim rows = divided("pixel_unshuffle", x.dim(2), r),
              columns = divided("pixel_unshuffle", x.dim(3), r);
    const Tensor apart = ops::reshape(x, {x.dim(0), x.dim(1), rows, Dim(r), columns, Dim(r)});
    return ops::reshape(ops::transpose(apart, {0, 1, 3, 5, 2, 4}),
                        {x.dim(0), x.dim(1) * (r * r), rows, columns});
  })};
}

Tensors decompose_channel_shuffle(CallContext& c) {
  const auto a = c.attrs_as<ChannelShuffleAttrs>();
  check_rank("channel_shuffle", c.operand(0), 4);
  return {in_channels_first(c.operand(0), a.data_format, [&](const Tensor& x) {
    const Dim each = divided("channel_shuffle", x.dim(1), a.groups);
    const Tensor apart = ops::reshape(x, {x.dim(0), Dim(a.groups), each, x.dim(2), x.dim(3)});
    return ops::reshape(ops::transpose(apart, {0, 2, 1, 3, 4}), x.shape());
  })};
}

Tensors decompose_zeropad2d(CallContext& c) {
  const auto a = c.attrs_as<Zeropad2dAttrs>();
  check_rank("zeropad2d", c.operand(0), 4);
  auto p = a.padding;
  if (p.size() == 1) p.assign(4, p[0]);
  if (p.size() != 4) refuse("zeropad2d", "padding must be [left, right, top, bottom]");
  const bool last = a.data_format == "NHWC";
  return {ops::pad(c.operand(0), last ? Axes{0, 0, p[2], p[3], p[0], p[1], 0, 0}
                                      : Axes{0, 0, 0, 0, p[2], p[3], p[0], p[1]})};
}

// ---- patches
// -------------------------------------------------------------------------------------

namespace {

struct Patches {
  std::vector<int64_t> kernel, stride, padding, dilation;
  Dim rows, columns;  ///< of patches

  Patches(const char* op, const AttrValue& k, const AttrValue& s, const AttrValue& p,
          const AttrValue& d, const Dim& height, const Dim& width)
      : kernel(window_numbers(k, 2, op)),
        stride(window_numbers(s, 2, op)),
        dilation(window_numbers(d, 2, op)) {
    for (size_t i = 0; i < 2; ++i)
      if (kernel[i] < 1 || stride[i] < 1 || dilation[i] < 1)
        refuse(op, "kernel sizes, strides and dilations must be positive");
    // Four paddings are [top, left, bottom, right].
    const auto given = p.as_ints();
    if (given.size() == 4)
      padding = {given[0], given[2], given[1], given[3]};
    else
      padding = window_padding(p, {height, width}, kernel, stride, dilation, false, op);
    rows = window_count(height, padding[0], padding[1], kernel[0], stride[0], dilation[0], false);
    columns = window_count(width, padding[2], padding[3], kernel[1], stride[1], dilation[1], false);
    if (rows.less(1).value_or(false) || columns.less(1).value_or(false))
      refuse(op, "the window is larger than the image");
  }
  Tensor bordered(const Tensor& x) const {
    return ops::pad(x, {0, 0, 0, 0, padding[0], padding[1], padding[2], padding[3]});
  }
  /// Where place (i, j) of the window lies in a bordered image, for all patches.
  Shape starts(int64_t i, int64_t j) const { return {Dim(i * dilation[0]), Dim(j * dilation[1])}; }
  Shape ends(int64_t i, int64_t j) const {
    return {(rows - 1) * stride[0] + i * dilation[0] + 1,
            (columns - 1) * stride[1] + j * dilation[1] + 1};
  }
};

}  // namespace

Tensors decompose_unfold(CallContext& c) {
  const auto a = c.attrs_as<UnfoldAttrs>();
  const Tensor& x = c.operand(0);
  if (a.axis && a.size && a.step) return {ops::unfold_axis(x, *a.axis, *a.size, *a.step)};
  if (a.kernel_sizes.is_none())
    refuse("unfold", "kernel_sizes, or axis, size and step must be given");
  check_rank("unfold", x, 4);
  const Patches p("unfold", a.kernel_sizes, a.strides, a.paddings, a.dilations, x.dim(2), x.dim(3));
  const Tensor image = p.bordered(x);
  Tensors places;
  for (int64_t i = 0; i < p.kernel[0]; ++i)
    for (int64_t j = 0; j < p.kernel[1]; ++j)
      places.push_back(ops::strided_slice(image, {2, 3}, p.starts(i, j), p.ends(i, j), p.stride));
  const int64_t window = p.kernel[0] * p.kernel[1];
  return {ops::reshape(ops::stack(places, 2), {x.dim(0), x.dim(1) * window, p.rows * p.columns})};
}

Tensors decompose_fold(CallContext& c) {
  const auto a = c.attrs_as<FoldAttrs>();
  const Tensor& x = c.operand(0);
  check_rank("fold", x, 3);
  const auto size = window_numbers(a.output_sizes, 2, "fold: output_sizes");
  const Patches p("fold", a.kernel_sizes, a.strides, a.paddings, a.dilations, size[0], size[1]);
  const int64_t window = p.kernel[0] * p.kernel[1];
  const Dim channels = divided("fold", x.dim(1), window);
  if (x.dim(2).equals(p.rows * p.columns) == false)
    refuse("fold", "x has ", x.dim(2), " columns, the sizes give ", p.rows * p.columns);
  const Tensor apart = ops::reshape(x, {x.dim(0), channels, Dim(window), p.rows, p.columns});
  const Tensor empty = full_of({x.dim(0), channels, Dim(size[0] + p.padding[0] + p.padding[1]),
                                Dim(size[1] + p.padding[2] + p.padding[3])},
                               0, x.dtype());
  Tensor sum = empty;
  for (int64_t i = 0; i < p.kernel[0]; ++i)
    for (int64_t j = 0; j < p.kernel[1]; ++j) {
      const int64_t at = i * p.kernel[1] + j;
      const Tensor place = ops::squeeze(part(apart, 2, at, at + 1), Axes{2});
      sum = sum + ops::strided_slice_scatter(empty, place, {2, 3}, p.starts(i, j), p.ends(i, j),
                                             p.stride);
    }
  return {part(part(sum, 2, p.padding[0], p.padding[0] + size[0]), 3, p.padding[2],
               p.padding[2] + size[1])};
}

// ---- resampling
// ----------------------------------------------------------------------------------

namespace {

/// Keys' cubic convolution with a = -0.75.
double cubic(double t) {
  constexpr double a = -0.75;
  t = std::abs(t);
  if (t <= 1) return ((a + 2) * t - (a + 3)) * t * t + 1;
  return t < 2 ? ((a * t - 5 * a) * t + 8 * a) * t - 4 * a : 0;
}

std::vector<double> resampling(const std::string& mode, int64_t in, int64_t out, double ratio,
                               bool corners, int64_t align_mode) {
  std::vector<double> matrix(static_cast<size_t>(out * in), 0.0);
  const auto add = [&](int64_t o, int64_t k, double w) {
    matrix[static_cast<size_t>(o * in + std::clamp<int64_t>(k, 0, in - 1))] += w;
  };
  const double step =
      corners ? (out > 1 ? static_cast<double>(in - 1) / static_cast<double>(out - 1) : 0.0)
              : ratio;
  for (int64_t o = 0; o < out; ++o) {
    const double at = static_cast<double>(o);
    if (mode == "nearest") {
      add(o, corners ? static_cast<int64_t>(step * at + 0.5) : static_cast<int64_t>(step * at), 1);
    } else if (mode == "area") {
      const int64_t begin = o * in / out, end = ((o + 1) * in + out - 1) / out;
      for (int64_t k = begin; k < end; ++k) add(o, k, 1.0 / static_cast<double>(end - begin));
    } else if (mode == "bicubic") {
      const double place = corners ? step * at : step * (at + 0.5) - 0.5, base = std::floor(place);
      for (int64_t k = -1; k <= 2; ++k)
        add(o, static_cast<int64_t>(base) + k, cubic(place - base - static_cast<double>(k)));
    } else {
      double place = corners || align_mode == 1 ? step * at : step * (at + 0.5) - 0.5;
      place = std::max(place, 0.0);
      const int64_t base = std::min(static_cast<int64_t>(place), in - 1);
      add(o, base, 1 - (place - static_cast<double>(base)));
      add(o, base + 1, place - static_cast<double>(base));
    }
  }
  return matrix;
}

/// Resampling whose filter is as wide as the step, so that what a smaller image cannot show is
/// averaged away: triangles, or Keys' cubic with a = -0.5.
std::vector<double> smooth_resampling(const std::string& mode, int64_t in, int64_t out,
                                      double step) {
  const bool cubic_filter = mode == "bicubic";
  const double width = std::max(step, 1.0), reach = (cubic_filter ? 2 : 1) * width;
  const auto filter = [&](double t) {
    t = std::abs(t);
    if (!cubic_filter) return std::max(0.0, 1 - t);
    if (t < 1) return (1.5 * t - 2.5) * t * t + 1;
    return t < 2 ? ((-0.5 * t + 2.5) * t - 4) * t + 2 : 0;
  };
  std::vector<double> matrix(static_cast<size_t>(out * in), 0.0);
  for (int64_t o = 0; o < out; ++o) {
    const double center = step * (static_cast<double>(o) + 0.5);
    const int64_t begin = std::max<int64_t>(static_cast<int64_t>(center - reach + 0.5), 0),
                  end = std::min<int64_t>(static_cast<int64_t>(center + reach + 0.5), in);
    double* const row = matrix.data() + o * in;
    double total = 0;
    for (int64_t k = begin; k < end; ++k) {
      row[k] = filter((static_cast<double>(k) - center + 0.5) / width);
      total += row[k];
    }
    for (int64_t k = begin; k < end; ++k) row[k] /= total;
  }
  return matrix;
}

}  // namespace

Tensors decompose_interpolate(CallContext& c) {
  const auto a = c.attrs_as<InterpolateAttrs>();
  Tensor x = c.operand(0);
  const char* op = "interpolate";
  if (x.ndim() < 3 || x.ndim() > 5) refuse(op, "x must have 3 to 5 dimensions, not ", x.type());
  const auto n = static_cast<size_t>(x.ndim() - 2);
  const bool last = a.data_format && channels_last(*a.data_format);
  if (a.size.is_none() == a.scale_factor.is_none())
    refuse(op, "one of size and scale_factor must be given");
  const size_t planes = a.mode == "bilinear" || a.mode == "bicubic" ? 2
                        : a.mode == "linear"                        ? 1
                        : a.mode == "trilinear"                     ? 3
                                                                    : n;
  if (planes != n) refuse(op, "mode '", a.mode, "' is not for ", x.type());
  if (a.antialias && a.mode != "bilinear" && a.mode != "bicubic")
    refuse(op, "antialias is for the modes bilinear and bicubic, not ", a.mode);
  const int64_t first = last ? 1 : 2;
  for (size_t i = 0; i < n; ++i) {
    const int64_t axis = first + static_cast<int64_t>(i), in = x.dim(axis).value();
    int64_t out;
    double ratio;
    if (!a.size.is_none()) {
      out = window_numbers(a.size, n, "interpolate: size")[i];
      ratio = static_cast<double>(in) / static_cast<double>(out);
    } else {
      const auto factors = a.scale_factor.is_list()
                               ? a.scale_factor.as_doubles()
                               : std::vector<double>(n, a.scale_factor.as_double());
      if (factors.size() != n && factors.size() != 1)
        refuse(op, "scale_factor must have ", n, " numbers");
      const double factor = factors[factors.size() == 1 ? 0 : i];
      if (!(factor > 0)) refuse(op, "scale_factor must be positive, not ", factor);
      out = static_cast<int64_t>(static_cast<double>(in) * factor);
      ratio = 1 / factor;
    }
    if (out < 1) refuse(op, "the result would be empty");
    if (a.recompute_scale_factor.value_or(false))
      ratio = static_cast<double>(in) / static_cast<double>(out);
    const double corner_step =
        out > 1 ? static_cast<double>(in - 1) / static_cast<double>(out - 1) : 0.0;
    const auto matrix =
        a.antialias ? smooth_resampling(a.mode, in, out, a.align_corners ? corner_step : ratio)
                    : resampling(a.mode, in, out, ratio, a.align_corners, a.align_mode);
    x = map_axis(x, axis, matrix, out, in);
  }
  return {x};
}

Tensors decompose_dropout2d(CallContext& c) {
  const auto a = c.attrs_as<Dropout2dAttrs>();
  check_rank("dropout2d", c.operand(0), 4);
  return {ops::dropout(c.operand(0), a.p, Axes{0, a.data_format == "NHWC" ? 3 : 1}, a.training)};
}

}  // namespace paddle::rules
