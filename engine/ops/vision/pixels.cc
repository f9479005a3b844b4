// Rules of pixels.yaml: pixel shuffles, padding and patches.

#include <functional>

#include "ops/core/compose.h"
#include "ops/generated/shape.h"
#include "ops/generated/vision.h"
#include "ops/generated/vision_rules.h"
#include "ops/nn/channels.h"
#include "ops/nn/window.h"

namespace paddle::rules {
namespace {

Tensor in_channels_first(const Tensor& x, const std::string& format,
                         const std::function<Tensor(const Tensor&)>& f) {
  return format == "NHWC" ? last_channels(f(first_channels(x))) : f(x);
}

Dim divided(const char* op, const Dim& d, int64_t by) {
  if (by < 1 || modulo(d, by).constant().value_or(0) != 0)
    reject(op, d, " does not divide by ", by);
  return floor_divide(d, by);
}

}  // namespace

Tensors decompose_pixel_shuffle(CallContext& c) {
  const auto a = c.attrs_as<PixelShuffleAttrs>();
  const int64_t r = a.upscale_factor;
  check_32_bits("pixel_shuffle", "upscale_factor", r);
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
  check_32_bits("pixel_unshuffle", "downscale_factor", r);
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
  if (p.size() != 4) reject("zeropad2d", "padding must be [left, right, top, bottom]");
  const bool last = a.data_format == "NHWC";
  return {ops::pad(c.operand(0), last ? Axes{0, 0, p[2], p[3], p[0], p[1], 0, 0}
                                      : Axes{0, 0, 0, 0, p[2], p[3], p[0], p[1]})};
}
namespace {

struct Patches {
  std::vector<int64_t> kernel, stride, padding, dilation;
  Dim rows, columns;  ///< of patches

  Patches(const char* op, const AttrValue& k, const AttrValue& s, const AttrValue& p,
          const AttrValue& d, const Dim& height, const Dim& width)
      : kernel(window_sizes(k, 2, op)),
        stride(window_sizes(s, 2, op)),
        dilation(window_sizes(d, 2, op)) {
    for (size_t i = 0; i < 2; ++i)
      if (kernel[i] < 1 || stride[i] < 1 || dilation[i] < 1)
        reject(op, "kernel sizes, strides and dilations must be positive");
    constexpr int64_t kMaxPlaces = 1 << 16;
    if (kernel[0] * kernel[1] > kMaxPlaces)
      reject(op, "windows of more than ", kMaxPlaces, " places are not computed");
    // Four paddings are [top, left, bottom, right].
    const auto given = p.as_ints();
    for (const int64_t size : given) {
      if (size < 0) reject(op, "padding ", p, " is negative");
      check_32_bits(op, "padding", size);
    }
    if (given.size() == 4)
      padding = {given[0], given[2], given[1], given[3]};
    else
      padding = window_padding(p, {height, width}, kernel, stride, dilation, false, op);
    rows = window_count(height, padding[0], padding[1], kernel[0], stride[0], dilation[0], false);
    columns = window_count(width, padding[2], padding[3], kernel[1], stride[1], dilation[1], false);
    if (rows.less(1).value_or(false) || columns.less(1).value_or(false))
      reject(op, "the window is larger than the image");
  }
  Tensor bordered(const Tensor& x) const {
    return ops::pad(x, {0, 0, 0, 0, padding[0], padding[1], padding[2], padding[3]});
  }
  /// The index of window element (i, j) in the padded input, for all patches.
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
    reject("unfold", "kernel_sizes, or axis, size and step must be given");
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
  const auto size = window_sizes(a.output_sizes, 2, "fold: output_sizes");
  const Patches p("fold", a.kernel_sizes, a.strides, a.paddings, a.dilations, size[0], size[1]);
  const int64_t window = p.kernel[0] * p.kernel[1];
  const Dim channels = divided("fold", x.dim(1), window);
  if (x.dim(2).equals(p.rows * p.columns) == false)
    reject("fold", "x has ", x.dim(2), " columns, the sizes give ", p.rows * p.columns);
  const Tensor apart = ops::reshape(x, {x.dim(0), channels, Dim(window), p.rows, p.columns});
  const Tensor empty = full_of({x.dim(0), channels, Dim(size[0] + p.padding[0] + p.padding[1]),
                                Dim(size[1] + p.padding[2] + p.padding[3])},
                               0, x.dtype());
  Tensor sum = empty;
  for (int64_t i = 0; i < p.kernel[0]; ++i)
    for (int64_t j = 0; j < p.kernel[1]; ++j) {
      const int64_t at = i * p.kernel[1] + j;
      const Tensor place = ops::squeeze(slice_axis(apart, 2, at, at + 1), Axes{2});
      sum = sum + ops::strided_slice_scatter(empty, place, {2, 3}, p.starts(i, j), p.ends(i, j),
                                             p.stride);
    }
  return {slice_axis(slice_axis(sum, 2, p.padding[0], p.padding[0] + size[0]), 3, p.padding[2],
                     p.padding[2] + size[1])};
}

Tensors decompose_temporal_shift(CallContext& c) {
  const auto a = c.attrs_as<TemporalShiftAttrs>();
  const bool last = a.data_format == "NHWC";
  if (c.operand(0).ndim() != 4)
    reject("temporal_shift", "x must have 4 dimensions, not ", c.operand(0).type());
  const Tensor x = last ? ops::transpose(c.operand(0), {0, 3, 1, 2}) : c.operand(0);
  if (!(a.shift_ratio > 0 && a.shift_ratio < 0.5))
    reject("temporal_shift", "shift_ratio must lie in (0, 0.5), not ", a.shift_ratio);
  constexpr int64_t kMaxFrames = 1 << 30;
  if (a.seg_num < 1 || a.seg_num > kMaxFrames ||
      modulo(x.dim(0), a.seg_num).constant().value_or(0) != 0)
    reject("temporal_shift", x.dim(0), " frames do not divide into segments of ", a.seg_num);
  const auto channels = static_cast<double>(x.dim(1).value());
  const auto first = static_cast<int64_t>(channels * a.shift_ratio),
             second = static_cast<int64_t>(channels * 2 * a.shift_ratio);
  const Tensor frames = ops::reshape(
      x, {floor_divide(x.dim(0), a.seg_num), Dim(a.seg_num), x.dim(1), x.dim(2), x.dim(3)});
  const Tensor bordered = ops::pad(frames, {0, 0, 1, 1, 0, 0, 0, 0, 0, 0});
  const Tensor before = slice_axis(slice_axis(bordered, 1, 0, a.seg_num), 2, 0, first);
  const Tensor after = slice_axis(slice_axis(bordered, 1, 2, a.seg_num + 2), 2, first, second);
  const Tensor kept = slice_axis(frames, 2, second, x.dim(1));
  const Tensor y = ops::reshape(ops::concat({before, after, kept}, 2), x.shape());
  return {last ? ops::transpose(y, {0, 2, 3, 1}) : y};
}

}  // namespace paddle::rules
