// Rules of schema/vision.yaml: rearranging pixels, patches, resampling.

#include <algorithm>
#include <cmath>
#include <functional>

#include "base/limits.h"
#include "ops/generated/attrs.h"
#include "ops/generated/rules.h"
#include "ops/vision.h"
#include "ops/window.h"

namespace paddle::rules {

// --- rearranging pixels ---

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

// --- patches ---

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
  const auto size = window_sizes(a.output_sizes, 2, "fold: output_sizes");
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
      const Tensor place = ops::squeeze(slice_axis(apart, 2, at, at + 1), Axes{2});
      sum = sum + ops::strided_slice_scatter(empty, place, {2, 3}, p.starts(i, j), p.ends(i, j),
                                             p.stride);
    }
  return {slice_axis(slice_axis(sum, 2, p.padding[0], p.padding[0] + size[0]), 3, p.padding[2],
                     p.padding[2] + size[1])};
}

// --- resampling ---

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

/// Antialiased resampling: the filter is as wide as the step when downsampling. Triangle filter, or
/// Keys' cubic with a = -0.5.
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
    if (in < 1) refuse(op, "axis ", axis, " of ", x.type(), " is empty");
    int64_t out;
    double ratio;
    if (!a.size.is_none()) {
      out = window_sizes(a.size, n, "interpolate: size")[i];
      ratio = static_cast<double>(in) / static_cast<double>(out);
    } else {
      const auto factors = a.scale_factor.is_list()
                               ? a.scale_factor.as_doubles()
                               : std::vector<double>(n, a.scale_factor.as_double());
      if (factors.size() != n && factors.size() != 1)
        refuse(op, "scale_factor must have ", n, " numbers");
      const double factor = factors[factors.size() == 1 ? 0 : i];
      if (!(factor > 0)) refuse(op, "scale_factor must be positive, not ", factor);
      const double size = static_cast<double>(in) * factor;
      if (!(size < 0x1p31)) refuse(op, "scale_factor ", factor, " makes the result too large");
      out = static_cast<int64_t>(size);
      ratio = 1 / factor;
    }
    if (out < 1) refuse(op, "the result would be empty");
    if (in > limits().memory / 16 / out)
      refuse(op, "weights for ", out, " places of ", in,
             " each would take more than half of the memory");
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
