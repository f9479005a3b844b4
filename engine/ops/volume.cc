// Rules of schema/volume.yaml: 3-D convolution, as a sum of 2-D convolutions over the depth of the
// kernel, and 3-D pooling, first within planes and then along the depth.

#include <algorithm>
#include <cmath>

#include "ops/compose.h"
#include "ops/generated/attrs.h"
#include "ops/generated/rules.h"
#include "ops/window.h"

namespace paddle::rules {
namespace {

/// Transposes NDHWC to NCDHW.
Tensor channels_first(const Tensor& x, const std::string& format) {
  return format == "NDHWC" ? ops::transpose(x, {0, 4, 1, 2, 3}) : x;
}
Tensor back_to(const Tensor& x, const std::string& format) {
  return format == "NDHWC" ? ops::transpose(x, {0, 2, 3, 4, 1}) : x;
}

Tensor volume(CallContext& c, const std::string& format) {
  const Tensor& x = c.operand(0);
  if (x.ndim() != 5) refuse(c.op().name(), "x must have 5 dimensions, not ", x.type());
  return channels_first(x, format);
}

AttrValue list(const Axes& numbers) { return AttrValue(numbers); }

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
  if (weight.ndim() != 5) refuse(op, "weight must have 5 dimensions, not ", weight.type());
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
  const Tensor x = volume(c, a.data_format);
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
        ops::conv2d(planes_of(met), slice_of_weight(w, k), {}, list({stride[1], stride[2]}),
                    list({border[2], border[3], border[4], border[5]}),
                    list({dilation[1], dilation[2]}), a.groups);
    sum = sum.defined() ? sum + y : y;
  }
  return {back_to(with_bias(volume_of(sum, x.dim(0), depth), c.operand(2)), a.data_format)};
}

namespace {

/// Borders of a transposed convolution; SAME is that of a convolution of x itself.
Axes transposed_borders(const Op& op, const AttrValue& padding, const Tensor& x, const Axes& kernel,
                        const Axes& stride, const Axes& dilation, bool last) {
  const bool same =
      padding.is_string() && (padding.as_string() == "SAME" || padding.as_string() == "same");
  if (!same)
    return window_padding(padding, {x.dim(2), x.dim(3), x.dim(4)}, kernel, {1, 1, 1}, dilation,
                          last, std::string(op.name()));
  Axes out;
  for (size_t i = 0; i < 3; ++i) {
    const int64_t size = x.dim(static_cast<int64_t>(i) + 2).value();
    const int64_t covered = ((size + stride[i] - 1) / stride[i] - 1) * stride[i];
    const int64_t total = std::max<int64_t>(0, covered + (kernel[i] - 1) * dilation[i] + 1 - size);
    out.push_back(total / 2);
    out.push_back(total - total / 2);
  }
  return out;
}

}  // namespace

Tensors decompose_conv3d_transpose(CallContext& c) {
  const auto a = c.attrs_as<Conv3dTransposeAttrs>();
  const Tensor x = volume(c, a.data_format);
  const Tensor& w = c.operand(1);
  const Op& op = c.op();
  const std::string name(op.name());
  const auto [kernel, stride, dilation] = window_of(name, w, a.stride, a.dilation);
  const auto extra = window_sizes(a.output_padding, 3, name + ": output_padding");
  if (stride[0] < 1 || dilation[0] < 1) refuse(op.name(), "stride and dilation must be positive");
  if (extra[0] < 0 || extra[0] >= std::max(stride[0], dilation[0]))
    refuse(op.name(), "output_padding ", extra[0], " must be below stride ", stride[0]);
  const Axes border =
      transposed_borders(op, a.padding, x, kernel, stride, dilation, a.data_format == "NDHWC");
  const Dim least =
      (x.dim(2) - 1) * stride[0] - border[0] - border[1] + (kernel[0] - 1) * dilation[0] + 1;
  Dim depth = least + extra[0];
  AttrValue plane_size;
  if (!a.output_size.is_none()) {
    const auto size = window_sizes(a.output_size, 3, name + ": output_size");
    depth = size[0];
    plane_size = list({size[1], size[2]});
    if (depth.less(least).value_or(false) || !depth.less(least + stride[0]).value_or(true))
      refuse(op.name(), "output_size ", depth, " must lie in [", least, ", ", least + stride[0],
             ")");
  }
  if (depth.less(1).value_or(false)) refuse(op.name(), "the result would be empty");
  // Each depth slice of the kernel adds its planes to the full result, which is then cropped.
  const Dim reach = (x.dim(2) - 1) * stride[0] + (kernel[0] - 1) * dilation[0] + 1;
  const Dim whole = maximum(reach, depth + border[0]);
  const Tensor planes = planes_of(x);
  Tensor sum;
  for (int64_t k = 0; k < kernel[0]; ++k) {
    const Tensor y = volume_of(
        ops::conv2d_transpose(planes, slice_of_weight(w, k), {}, list({stride[1], stride[2]}),
                              list({border[2], border[3], border[4], border[5]}),
                              list({extra[1], extra[2]}), list({dilation[1], dilation[2]}),
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
  if (!sum.defined()) refuse(op.name(), "the kernel ", w.type(), " is empty");
  const Tensor cut = slice_axis(sum, 2, border[0], depth + border[0]);
  return {back_to(with_bias(cut, c.operand(2)), a.data_format)};
}

// --- pooling ---

namespace {

/// Windows of 3-D pooling.
struct Windows {
  Axes kernel, stride, border;

  Windows(const Op& op, const AttrValue& kernel_size, const AttrValue& step,
          const AttrValue& padding, const Tensor& x, bool last)
      : kernel(window_sizes(kernel_size, 3, str(op.name(), ": kernel_size"))),
        stride(step.is_none() ? kernel : window_sizes(step, 3, str(op.name(), ": stride"))) {
    for (size_t i = 0; i < 3; ++i)
      if (kernel[i] < 1 || stride[i] < 1)
        refuse(op.name(), "kernel_size and stride must be positive");
    border = window_padding(padding, {x.dim(2), x.dim(3), x.dim(4)}, kernel, stride, {1, 1, 1},
                            last, std::string(op.name()));
  }
  AttrValue plane(const Axes& of) const { return list({of[1], of[2]}); }
  AttrValue plane_border() const { return list({border[2], border[3], border[4], border[5]}); }
  AttrValue line_border() const { return list({border[0], border[1]}); }
};

/// [n, c * d, h, w] as lines across the planes, [n, c * h * w, d].
Tensor lines_of(const Tensor& planes, const Tensor& x) {
  const Dim pixels = planes.dim(2) * planes.dim(3);
  const Tensor apart = ops::reshape(planes, {x.dim(0), x.dim(1), x.dim(2), pixels});
  return ops::reshape(ops::transpose(apart, {0, 1, 3, 2}), {x.dim(0), x.dim(1) * pixels, x.dim(2)});
}

/// The inverse of `lines_of`, for the plane size of `planes`.
Tensor volume_of_lines(const Tensor& lines, const Tensor& planes, const Tensor& x) {
  const Dim pixels = planes.dim(2) * planes.dim(3);
  const Tensor apart = ops::reshape(lines, {x.dim(0), x.dim(1), pixels, lines.dim(2)});
  return ops::reshape(ops::transpose(apart, {0, 1, 3, 2}),
                      {x.dim(0), x.dim(1), lines.dim(2), planes.dim(2), planes.dim(3)});
}

Tensor stacked_planes(const Tensor& x) {
  return ops::reshape(x, {x.dim(0), x.dim(1) * x.dim(2), x.dim(3), x.dim(4)});
}

/// Maxima and their flat indices, from max pooling within planes and along the depth.
Tensors joined(const Tensor& x, const Tensors& planes, const Tensors& lines) {
  const Tensor depth = ops::cast(lines[1], DType::kI64);
  const Tensor in_plane = ops::gather_along(lines_of(planes[1], x), depth, 2);
  const Dim pixels = x.dim(3) * x.dim(4);
  const Tensor place = depth * dim_value(pixels, DType::kI64) + ops::cast(in_plane, DType::kI64);
  return {volume_of_lines(lines[0], planes[0], x),
          volume_of_lines(ops::cast(place, DType::kI32), planes[0], x)};
}

Tensors asked(Tensors pooled, bool mask, const std::string& format) {
  if (!mask) pooled.resize(1);
  for (Tensor& t : pooled) t = back_to(t, format);
  return pooled;
}

/// Max pooling of NDHWC without indices, as two 2-D poolings: of the planes, and of (depth, pixel).
Tensor largest(const Tensor& x, const Windows& w, bool ceil_mode) {
  const Tensor planes = ops::max_pool2d(
      ops::reshape(x, {x.dim(0) * x.dim(1), x.dim(2), x.dim(3), x.dim(4)}), w.plane(w.kernel),
      w.plane(w.stride), w.plane_border(), false, ceil_mode, "NHWC")[0];
  const Dim height = planes.dim(1), width = planes.dim(2);
  Tensor lines = ops::reshape(planes, {x.dim(0), x.dim(1), height * width, x.dim(4)});
  if (w.kernel[0] != 1 || w.stride[0] != 1 || w.border[0] + w.border[1] != 0)
    lines = ops::max_pool2d(lines, list({w.kernel[0], 1}), list({w.stride[0], 1}),
                            list({w.border[0], w.border[1], 0, 0}), false, ceil_mode, "NHWC")[0];
  return ops::reshape(lines, {x.dim(0), lines.dim(1), height, width, x.dim(4)});
}

}  // namespace

Tensors decompose_max_pool3d(CallContext& c) {
  const auto a = c.attrs_as<MaxPool3dAttrs>();
  const Tensor x = volume(c, a.data_format);
  const bool last = a.data_format == "NDHWC";
  const Windows w(c.op(), a.kernel_size, a.stride, a.padding, x, last);
  if (!a.return_mask) {
    const Tensor y =
        largest(last ? c.operand(0) : ops::transpose(x, {0, 2, 3, 4, 1}), w, a.ceil_mode);
    return {last ? y : ops::transpose(y, {0, 4, 1, 2, 3})};
  }
  const Tensors planes = ops::max_pool2d(stacked_planes(x), w.plane(w.kernel), w.plane(w.stride),
                                         w.plane_border(), true, a.ceil_mode);
  const Tensors lines = ops::max_pool1d(lines_of(planes[0], x), list({w.kernel[0]}),
                                        list({w.stride[0]}), w.line_border(), true, a.ceil_mode);
  return asked(joined(x, planes, lines), true, a.data_format);
}

Tensors decompose_adaptive_max_pool3d(CallContext& c) {
  const auto a = c.attrs_as<AdaptiveMaxPool3dAttrs>();
  const Tensor x = volume(c, "NCDHW");
  AttrValue::List size =
      a.output_size.is_list() ? a.output_size.as_list() : AttrValue::List(3, a.output_size);
  if (size.size() != 3)
    refuse(c.op().name(), "output_size must be a number or 3, not ", a.output_size);
  const Tensors planes =
      ops::adaptive_max_pool2d(stacked_planes(x), AttrValue::List{size[1], size[2]}, true);
  const Tensors lines =
      ops::adaptive_max_pool1d(lines_of(planes[0], x), AttrValue::List{size[0]}, true);
  return asked(joined(x, planes, lines), a.return_mask, "NCDHW");
}

Tensors decompose_adaptive_avg_pool3d(CallContext& c) {
  const auto a = c.attrs_as<AdaptiveAvgPool3dAttrs>();
  const Tensor x = volume(c, a.data_format);
  AttrValue::List size =
      a.output_size.is_list() ? a.output_size.as_list() : AttrValue::List(3, a.output_size);
  if (size.size() != 3)
    refuse(c.op().name(), "output_size must be a number or 3, not ", a.output_size);
  const Tensor planes =
      ops::adaptive_avg_pool2d(stacked_planes(x), AttrValue::List{size[1], size[2]});
  const Tensor lines = ops::adaptive_avg_pool1d(lines_of(planes, x), AttrValue::List{size[0]});
  return {back_to(volume_of_lines(lines, planes, x), a.data_format)};
}

Tensors decompose_avg_pool3d(CallContext& c) {
  const auto a = c.attrs_as<AvgPool3dAttrs>();
  const Tensor x = volume(c, a.data_format);
  const Windows w(c.op(), a.kernel_size, a.stride, a.padding, x, a.data_format == "NDHWC");
  // Sums over planes and lines, divided by the number of elements in each window.
  const Tensor planes = ops::avg_pool2d(stacked_planes(x), w.plane(w.kernel), w.plane(w.stride),
                                        w.plane_border(), a.ceil_mode, false, 1.0);
  const Tensor lines = ops::unsqueeze(lines_of(planes, x), {2});
  const Tensor sums =
      ops::squeeze(ops::avg_pool2d(lines, list({1, w.kernel[0]}), list({1, w.stride[0]}),
                                   list({0, 0, w.border[0], w.border[1]}), a.ceil_mode, false, 1.0),
                   Axes{2});
  const Tensor total = volume_of_lines(sums, planes, x);
  if (a.divisor_override) return {back_to(total / *a.divisor_override, a.data_format)};
  Tensor mean = total;
  for (size_t i = 0; i < 3; ++i) {
    const int64_t axis = static_cast<int64_t>(i) + 2, size = x.dim(axis).value();
    const int64_t count = total.dim(axis).value();
    std::vector<double> inside;
    for (int64_t o = 0; o < count; ++o) {
      const int64_t begin = o * w.stride[i] - w.border[2 * i];
      const int64_t end = std::min(begin + w.kernel[i], size + w.border[2 * i + 1]);
      const int64_t held = std::min(end, size) - std::max<int64_t>(begin, 0);
      inside.push_back(static_cast<double>(a.exclusive ? held : end - begin));
    }
    Dims shape(5, 1);
    shape[i + 2] = count;
    mean = mean / ops::cast(Tensor(Array::from(inside, shape)), x.dtype());
  }
  return {back_to(mean, a.data_format)};
}

// --- pooling undone ---

namespace {

Tensors unpooled(CallContext& c, size_t n, const AttrValue& kernel_size, const AttrValue& step,
                 const AttrValue& padding, const AttrValue& output_size) {
  const Tensor &x = c.operand(0), &places = c.operand(1);
  const Op& op = c.op();
  const std::string name(op.name());
  if (x.ndim() != static_cast<int64_t>(n) + 2)
    refuse(op.name(), "x must have ", n + 2, " dimensions, not ", x.type());
  if (!is_integer(places.dtype()) || !same_shape(places.shape(), x.shape()))
    refuse(op.name(), "indices must be integers in the shape of x ", x.type(), ", not ",
           places.type());
  const auto kernel = window_sizes(kernel_size, n, name + ": kernel_size");
  const auto stride = step.is_none() ? kernel : window_sizes(step, n, name + ": stride");
  const auto border = window_sizes(padding, n, name + ": padding");
  Shape shape = x.shape();
  Dim from = 1, to = 1;
  Axes wanted;
  if (!output_size.is_none()) {
    wanted = output_size.as_ints();
    if (wanted.size() == n + 2) wanted.erase(wanted.begin(), wanted.begin() + 2);
    if (wanted.size() != n)
      refuse(op.name(), "output_size must have ", n, " numbers, not ", output_size);
  }
  for (size_t i = 0; i < n; ++i) {
    Dim& d = shape[i + 2];
    from = from * d;
    const Dim usual = (d - 1) * stride[i] - 2 * border[i] + kernel[i];
    if (!wanted.empty() && (Dim(wanted[i]).less(usual - stride[i] + 1).value_or(false) ||
                            !Dim(wanted[i]).less(usual + stride[i]).value_or(true)))
      refuse(op.name(), "output_size ", wanted[i], " must be nearer than ", stride[i], " to ",
             usual);
    d = wanted.empty() ? usual : Dim(wanted[i]);
    if (d.less(1).value_or(false)) refuse(op.name(), "the result would be empty");
    to = to * d;
  }
  const Tensor empty = full_of({x.dim(0), x.dim(1), to}, 0, x.dtype());
  const Shape flat = {x.dim(0), x.dim(1), from};
  const Tensor at = ops::reshape(ops::cast(places, DType::kI64), flat);
  return {ops::reshape(ops::scatter_along(empty, at, ops::reshape(x, flat), 2), shape)};
}

/// Sums over windows of the powers, and their root.
Tensor power_pool(const Tensor& x, const AttrValue& order,
                  const std::function<Tensor(const Tensor&)>& sums) {
  const double p = order.as_double();
  return ops::pow(sums(ops::pow(x, Tensor::number(p))), Tensor::number(1 / p));
}

}  // namespace

Tensors decompose_max_unpool1d(CallContext& c) {
  const auto a = c.attrs_as<MaxUnpool1dAttrs>();
  return unpooled(c, 1, a.kernel_size, a.stride, a.padding, a.output_size);
}

Tensors decompose_max_unpool2d(CallContext& c) {
  const auto a = c.attrs_as<MaxUnpool2dAttrs>();
  return unpooled(c, 2, a.kernel_size, a.stride, a.padding, a.output_size);
}

Tensors decompose_max_unpool3d(CallContext& c) {
  const auto a = c.attrs_as<MaxUnpool3dAttrs>();
  return unpooled(c, 3, a.kernel_size, a.stride, a.padding, a.output_size);
}

Tensors decompose_lp_pool1d(CallContext& c) {
  const auto a = c.attrs_as<LpPool1dAttrs>();
  const Tensor& given = c.operand(0);
  if (given.ndim() != 3) refuse(c.op().name(), "x must have 3 dimensions, not ", given.type());
  const bool last = a.data_format == "NLC";
  const Tensor x = last ? ops::transpose(given, {0, 2, 1}) : given;
  const std::string name(c.op().name());
  const int64_t kernel = window_sizes(a.kernel_size, 1, name + ": kernel_size")[0];
  const int64_t stride =
      a.stride.is_none() ? kernel : window_sizes(a.stride, 1, name + ": stride")[0];
  Tensor y;
  if (std::isinf(a.norm_type.as_double())) {
    y = ops::max_pool1d(x, list({kernel}), list({stride}), a.padding, false, a.ceil_mode)[0];
  } else {
    const auto border = window_padding(a.padding, {x.dim(2)}, {kernel}, {stride}, {1}, false, name);
    y = power_pool(x, a.norm_type, [&](const Tensor& t) {
      return ops::squeeze(
          ops::avg_pool2d(ops::unsqueeze(t, {2}), list({1, kernel}), list({1, stride}),
                          list({0, 0, border[0], border[1]}), a.ceil_mode, false, 1.0),
          Axes{2});
    });
  }
  return {last ? ops::transpose(y, {0, 2, 1}) : y};
}

Tensors decompose_lp_pool2d(CallContext& c) {
  const auto a = c.attrs_as<LpPool2dAttrs>();
  const Tensor& x = c.operand(0);
  if (std::isinf(a.norm_type.as_double()))
    return {ops::max_pool2d(x, a.kernel_size, a.stride, a.padding, false, a.ceil_mode,
                            a.data_format)[0]};
  return {power_pool(x, a.norm_type, [&](const Tensor& t) {
    return ops::avg_pool2d(t, a.kernel_size, a.stride, a.padding, a.ceil_mode, false, 1.0,
                           a.data_format);
  })};
}

Tensors decompose_dropout3d(CallContext& c) {
  const auto a = c.attrs_as<Dropout3dAttrs>();
  const Tensor& x = c.operand(0);
  if (x.ndim() != 5) refuse(c.op().name(), "x must have 5 dimensions, not ", x.type());
  return {ops::dropout(x, a.p, Axes{0, a.data_format == "NDHWC" ? 4 : 1}, a.training)};
}

}  // namespace paddle::rules
