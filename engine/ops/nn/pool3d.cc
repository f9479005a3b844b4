// Rules of pool.yaml: 3-D pooling, planes first and then the lines across them.

#include <algorithm>

#include "ops/generated/creation.h"
#include "ops/generated/indexing.h"
#include "ops/generated/math.h"
#include "ops/generated/nn.h"
#include "ops/generated/nn_rules.h"
#include "ops/generated/shape.h"
#include "ops/nn/channels.h"
#include "ops/nn/window.h"

namespace paddle::rules {
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
        reject(op.name(), "kernel_size and stride must be positive");
    border = window_padding(padding, {x.dim(2), x.dim(3), x.dim(4)}, kernel, stride, {1, 1, 1},
                            last, std::string(op.name()));
  }
  AttrValue plane(const Axes& of) const { return int_list({of[1], of[2]}); }
  AttrValue plane_border() const { return int_list({border[2], border[3], border[4], border[5]}); }
  AttrValue line_border() const { return int_list({border[0], border[1]}); }
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
  for (Tensor& t : pooled) t = from_channels_first(t, format);
  return pooled;
}

/// Max pooling without indices as two 2-D poolings: of the planes, and of (depth, pixel).
Tensor largest(const Tensor& x, const Windows& w, bool ceil_mode, bool last) {
  const std::string format = last ? "NHWC" : "NCHW";
  const size_t depth_axis = last ? 1 : 2;
  const Dim n = x.dim(0), channels = x.dim(last ? 4 : 1);
  const Dim &depth = x.dim(static_cast<int64_t>(depth_axis)),
            &rows = x.dim(static_cast<int64_t>(depth_axis) + 1),
            &columns = x.dim(static_cast<int64_t>(depth_axis) + 2);
  const auto images = [&](const Dim& d, const Dim& h, const Dim& width) {
    return last ? Shape{n * d, h, width, channels} : Shape{n, channels * d, h, width};
  };
  const Tensor planes =
      ops::max_pool2d(ops::reshape(x, images(depth, rows, columns)), w.plane(w.kernel),
                      w.plane(w.stride), w.plane_border(), false, ceil_mode, format)[0];
  const Dim &height = planes.dim(last ? 1 : 2), &width = planes.dim(last ? 2 : 3);
  const auto volume = [&](const Dim& d, const Shape& pixels) {
    Shape shape = last ? Shape{n, d} : Shape{n, channels, d};
    shape.insert(shape.end(), pixels.begin(), pixels.end());
    if (last) shape.push_back(channels);
    return shape;
  };
  Tensor lines = ops::reshape(planes, volume(depth, {height * width}));
  if (w.kernel[0] != 1 || w.stride[0] != 1 || w.border[0] + w.border[1] != 0)
    lines =
        ops::max_pool2d(lines, int_list({w.kernel[0], 1}), int_list({w.stride[0], 1}),
                        int_list({w.border[0], w.border[1], 0, 0}), false, ceil_mode, format)[0];
  return ops::reshape(lines, volume(lines.dim(static_cast<int64_t>(depth_axis)), {height, width}));
}

/// The number of elements in each window along one axis, padding included unless `exclusive`.
Tensor window_counts(const Windows& w, size_t i, const Dim& size, const Dim& count,
                     bool exclusive) {
  const int64_t before = w.border[2 * i], after = w.border[2 * i + 1];
  if (!size.is_constant()) {
    const auto number_of = [](const Dim& d) { return dim_value(d, DType::kF64); };
    const Tensor index = ops::arange(AttrValue(0), AttrValue(count), AttrValue(1), DType::kF64);
    const Tensor begin = index * static_cast<double>(w.stride[i]) - static_cast<double>(before);
    const Tensor end =
        ops::minimum(begin + static_cast<double>(w.kernel[i]), number_of(size + after));
    if (!exclusive) return end - begin;
    return ops::minimum(end, number_of(size)) - ops::maximum(begin, number(0.0));
  }
  std::vector<double> inside;
  for (int64_t o = 0; o < count.value(); ++o) {
    const int64_t begin = o * w.stride[i] - before;
    const int64_t end = std::min(begin + w.kernel[i], size.value() + after);
    const int64_t held = std::min(end, size.value()) - std::max<int64_t>(begin, 0);
    inside.push_back(static_cast<double>(exclusive ? held : end - begin));
  }
  return Tensor(Array::from(inside, {count.value()}));
}

}  // namespace

Tensors decompose_max_pool3d(CallContext& c) {
  const auto a = c.attrs_as<MaxPool3dAttrs>();
  const Tensor x = volume_operand(c, a.data_format);
  const bool last = a.data_format == "NDHWC";
  const Windows w(c.op(), a.kernel_size, a.stride, max_pool_padding(a.padding, a.return_mask), x,
                  last);
  if (!a.return_mask) return {largest(c.operand(0), w, a.ceil_mode, last)};
  const Tensors planes = ops::max_pool2d(stacked_planes(x), w.plane(w.kernel), w.plane(w.stride),
                                         w.plane_border(), true, a.ceil_mode);
  const Tensors lines =
      ops::max_pool1d(lines_of(planes[0], x), int_list({w.kernel[0]}), int_list({w.stride[0]}),
                      w.line_border(), true, a.ceil_mode);
  return asked(joined(x, planes, lines), true, a.data_format);
}

Tensors decompose_adaptive_max_pool3d(CallContext& c) {
  const auto a = c.attrs_as<AdaptiveMaxPool3dAttrs>();
  const Tensor x = volume_operand(c, "NCDHW");
  AttrValue::List size =
      a.output_size.is_list() ? a.output_size.as_list() : AttrValue::List(3, a.output_size);
  if (size.size() != 3)
    reject(c.op().name(), "output_size must be a number or 3, not ", a.output_size);
  const Tensors planes =
      ops::adaptive_max_pool2d(stacked_planes(x), AttrValue::List{size[1], size[2]}, true);
  const Tensors lines =
      ops::adaptive_max_pool1d(lines_of(planes[0], x), AttrValue::List{size[0]}, true);
  return asked(joined(x, planes, lines), a.return_mask, "NCDHW");
}

Tensors decompose_adaptive_avg_pool3d(CallContext& c) {
  const auto a = c.attrs_as<AdaptiveAvgPool3dAttrs>();
  const Tensor x = volume_operand(c, a.data_format);
  AttrValue::List size =
      a.output_size.is_list() ? a.output_size.as_list() : AttrValue::List(3, a.output_size);
  if (size.size() != 3)
    reject(c.op().name(), "output_size must be a number or 3, not ", a.output_size);
  const Tensor planes =
      ops::adaptive_avg_pool2d(stacked_planes(x), AttrValue::List{size[1], size[2]});
  const Tensor lines = ops::adaptive_avg_pool1d(lines_of(planes, x), AttrValue::List{size[0]});
  return {from_channels_first(volume_of_lines(lines, planes, x), a.data_format)};
}

Tensors decompose_avg_pool3d(CallContext& c) {
  const auto a = c.attrs_as<AvgPool3dAttrs>();
  const Tensor x = volume_operand(c, a.data_format);
  const Windows w(c.op(), a.kernel_size, a.stride, a.padding, x, a.data_format == "NDHWC");
  // Sums over planes and lines, divided by the number of elements in each window.
  const Tensor planes = ops::avg_pool2d(stacked_planes(x), w.plane(w.kernel), w.plane(w.stride),
                                        w.plane_border(), a.ceil_mode, false, 1.0);
  const Tensor lines = ops::unsqueeze(lines_of(planes, x), {2});
  const Tensor sums = ops::squeeze(
      ops::avg_pool2d(lines, int_list({1, w.kernel[0]}), int_list({1, w.stride[0]}),
                      int_list({0, 0, w.border[0], w.border[1]}), a.ceil_mode, false, 1.0),
      Axes{2});
  const Tensor total = volume_of_lines(sums, planes, x);
  if (a.divisor_override) return {from_channels_first(total / *a.divisor_override, a.data_format)};
  Tensor mean = total;
  for (size_t i = 0; i < 3; ++i) {
    const int64_t axis = static_cast<int64_t>(i) + 2;
    Shape shape(5, 1);
    shape[i + 2] = total.dim(axis);
    const Tensor counts = window_counts(w, i, x.dim(axis), total.dim(axis), a.exclusive);
    mean = mean / ops::cast(ops::reshape(counts, shape), x.dtype());
  }
  return {from_channels_first(mean, a.data_format)};
}

}  // namespace paddle::rules
