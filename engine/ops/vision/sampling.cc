// Rules of sampling.yaml: interpolation at real coordinates, and what is made of it.

#include <algorithm>

#include "ops/generated/indexing.h"
#include "ops/generated/linalg.h"
#include "ops/generated/math.h"
#include "ops/generated/shape.h"
#include "ops/generated/vision.h"
#include "ops/generated/vision_rules.h"
#include "ops/nn/channels.h"
#include "ops/nn/window.h"

namespace paddle::rules {
namespace {

constexpr size_t kMaxTaps = 4096;  // neighbors per point

/// Neighbor indices along one axis and their weights; an undefined weight is 1.
struct AxisTaps {
  Tensors indices, weights;
};

Tensor reflected(const Tensor& x, double low, const Tensor& span) {
  const Tensor width = ops::maximum(span, number(0.5));
  const Tensor phase = ops::remainder(x - low, width * 2.0);
  return ops::where(ops::greater_than(phase, width), width * 2.0 - phase, phase) + low;
}

Tensor cubic_weight(const Tensor& distance) {
  constexpr double a = -0.75;
  const Tensor x = ops::abs(distance), x2 = x * x, x3 = x2 * x;
  const Tensor near = x3 * (a + 2) - x2 * (a + 3) + 1.0;
  const Tensor far = x3 * a - x2 * (5 * a) + x * (8 * a) - 4 * a;
  const Tensor outer = ops::where(ops::less_than(x, number(2.0)), far, number(0.0));
  return ops::where(ops::less_equal(x, number(1.0)), near, outer);
}

AxisTaps filter_taps(const Tensor& in, const Dim& size, const SamplePointsAttrs& a) {
  const Tensor last = dim_value(size - 1, in.dtype());
  const double low = a.align_corners ? 0 : -0.5;
  const Tensor span = a.align_corners ? last : last + 1.0;
  Tensor x = a.mode == "nearest" ? ops::round(in) : in;
  const auto clamped = [&](const Tensor& t) {
    return ops::minimum(ops::maximum(t, number(0.0)), last);
  };
  // Cubic neighbors are clamped one by one.
  if (a.padding_mode == "border" && a.mode != "bicubic") x = clamped(x);
  if (a.padding_mode == "reflection") {
    const Tensor outside =
        ops::logical_or(ops::less_than(x, number(low)), ops::greater_than(x, span + low));
    x = ops::where(outside, reflected(x, low, span), x);
    if (a.mode == "nearest") x = ops::trunc(x);
  }
  // Keeps infinite and NaN coordinates within the integer range.
  x = ops::where(ops::isnan(x), number(-8.0), x);
  x = ops::minimum(ops::maximum(x, number(-16.0)), last + 16.0);
  const Tensor base = ops::floor(x);
  AxisTaps taps;
  const int first = a.mode == "bicubic" ? -1 : 0;
  const int count = a.mode == "bicubic" ? 4 : a.mode == "bilinear" ? 2 : 1;
  for (int k = first; k < first + count; ++k) {
    Tensor index = base + static_cast<double>(k);
    Tensor weight;
    if (a.mode == "bilinear") weight = k == 0 ? 1.0 - (x - base) : x - base;
    if (a.mode == "bicubic") weight = cubic_weight(x - index);
    if (a.padding_mode == "zeros") {
      const Tensor inside =
          ops::logical_and(ops::greater_equal(index, number(0.0)), ops::less_equal(index, last));
      const Tensor kept = ops::cast(inside, x.dtype());
      weight = weight ? weight * kept : kept;
    } else if (a.padding_mode == "reflection") {
      index = ops::trunc(reflected(index, low, span));
    }
    taps.indices.push_back(ops::cast(clamped(index), DType::kI64));
    taps.weights.push_back(weight);
  }
  return taps;
}

Tensor in_float32(const Tensor& x) {
  return x.dtype() == DType::kF16 || x.dtype() == DType::kBF16 ? ops::cast(x, DType::kF32) : x;
}

}  // namespace

Tensors decompose_sample_points(CallContext& c) {
  const auto a = c.attrs_as<SamplePointsAttrs>();
  const Tensor &x = c.operand(0), &at = c.operand(1);
  const int64_t rank = x.ndim() - 2;
  if (rank < 1 || at.ndim() != 3 || at.dim(2).equals(rank) == false)
    reject("sample_points", "x ", x.type(), " needs coordinates [batch, points, ",
           std::max<int64_t>(rank, 1), "], not ", at.type());
  if (x.dim(0).equals(at.dim(0)) == false)
    reject("sample_points", "x ", x.type(), " and coordinates ", at.type(),
           " differ in their batch");
  const Dim batch = x.dim(0), channels = x.dim(1), points = at.dim(1);
  Dim volume = 1;
  std::vector<AxisTaps> axes;
  for (int64_t i = 0; i < rank; ++i) {
    const Dim& size = x.dim(i + 2);
    if (size.equals(0) == true) reject("sample_points", "x ", x.type(), " has no elements");
    volume = volume * size;
    const Tensor along = ops::squeeze(slice_axis(at, 2, i, i + 1), Axes{2});
    axes.push_back(filter_taps(along, size, a));
  }
  // Channels last, so that a point is one row.
  const Tensor rows =
      ops::reshape(ops::transpose(ops::reshape(x, {batch, channels, volume}), {0, 2, 1}),
                   {batch * volume, channels});
  const Tensor start = ops::unsqueeze(range_of(batch, DType::kI64), {1});
  const size_t per_axis = axes[0].indices.size();
  size_t combinations = 1;
  for (int64_t i = 0; i < rank; ++i)
    if ((combinations *= per_axis) > kMaxTaps)
      reject("sample_points", "sampling along ", rank, " axes is not supported");
  Tensor out;
  for (size_t k = 0; k < combinations; ++k) {
    Tensor index = start, weight;
    size_t rest = k;
    for (size_t i = 0; i < axes.size(); ++i, rest /= per_axis) {
      const Tensor& w = axes[i].weights[rest % per_axis];
      index = index * dim_value(x.dim(static_cast<int64_t>(i) + 2), DType::kI64) +
              axes[i].indices[rest % per_axis];
      if (w) weight = weight ? weight * w : w;
    }
    Tensor values = ops::index_select(rows, ops::reshape(index, {batch * points}), 0);
    if (weight) values = values * ops::reshape(weight, {batch * points, Dim(1)});
    out = out ? out + values : values;
  }
  return {ops::transpose(ops::reshape(out, {batch, points, channels}), {0, 2, 1})};
}

Tensors decompose_grid_sample(CallContext& c) {
  const auto a = c.attrs_as<GridSampleAttrs>();
  const DType dtype = c.operand(0).dtype();
  const Tensor x = in_float32(c.operand(0)), grid = in_float32(c.operand(1));
  const int64_t rank = x.ndim() - 2;
  if (rank < 1 || grid.ndim() != rank + 2 || grid.dim(-1).equals(rank) == false)
    reject("grid_sample", "the grid ", grid.type(), " does not match x ", x.type(),
           ": it must be [batch, spatial axes..., ", std::max<int64_t>(rank, 1), "]");
  Dim points = 1;
  Shape shape = {x.dim(0), x.dim(1)};
  for (int64_t i = 1; i <= rank; ++i) {
    points = points * grid.dim(i);
    shape.push_back(grid.dim(i));
  }
  const Tensor flat_grid = ops::reshape(grid, {grid.dim(0), points, Dim(rank)});
  Tensors axes;
  for (int64_t i = 0; i < rank; ++i) {
    const Tensor n = slice_axis(flat_grid, 2, rank - 1 - i, rank - i);
    const Tensor size = dim_value(x.dim(i + 2), x.dtype());
    axes.push_back(a.align_corners ? (n + 1.0) * ((size - 1.0) / 2.0)
                                   : ((n + 1.0) * size - 1.0) / 2.0);
  }
  const Tensor at = rank == 1 ? axes[0] : ops::concat(axes, 2);
  return {ops::cast(
      ops::reshape(ops::sample_points(x, at, a.mode, a.padding_mode, a.align_corners), shape),
      dtype)};
}

Tensors decompose_deform_conv2d(CallContext& c) {
  const auto a = c.attrs_as<DeformConv2dAttrs>();
  constexpr const char* kName = "deform_conv2d";
  const DType dtype = c.operand(0).dtype();
  const Tensor x = in_float32(c.operand(0)), offset = in_float32(c.operand(1)),
               weight = in_float32(c.operand(2));
  check_rank(kName, x, 4);
  check_rank(kName, offset, 4);
  check_rank(kName, weight, 4);
  for (int64_t i = 0; i < 4; ++i)
    if (!weight.dim(i).is_constant() || weight.dim(i).value() < 1)
      reject(kName, "weight ", weight.type(), " must have constant sizes above 0");
  if (!x.dim(1).is_constant()) reject(kName, "the channels of x ", x.type(), " must be constant");
  const int64_t filters = weight.dim(0).value(), channels = x.dim(1).value();
  const Axes kernel = {weight.dim(2).value(), weight.dim(3).value()};
  const auto stride = window_sizes(a.stride, 2, "deform_conv2d: stride"),
             dilation = window_sizes(a.dilation, 2, "deform_conv2d: dilation");
  for (const int64_t v : {stride[0], stride[1], dilation[0], dilation[1]})
    if (v < 1) reject(kName, "stride and dilation must be positive, not ", v);
  const auto border =
      window_padding(a.padding, {x.dim(2), x.dim(3)}, kernel, stride, dilation, false, kName);
  const int64_t taps = kernel[0] * kernel[1];
  if (a.groups < 1 || filters % a.groups != 0 || channels % a.groups != 0 ||
      weight.dim(1).value() * a.groups != channels)
    reject(kName, "groups ", a.groups, " do not divide x ", x.type(), " and weight ",
           weight.type());
  if (a.deformable_groups < 1 || channels % a.deformable_groups != 0)
    reject(kName, "deformable_groups ", a.deformable_groups, " do not divide ", channels,
           " channels");
  const Dim rows =
      window_count(x.dim(2), border[0], border[1], kernel[0], stride[0], dilation[0], false);
  const Dim columns =
      window_count(x.dim(3), border[2], border[3], kernel[1], stride[1], dilation[1], false);
  if (rows.less(1).value_or(false) || columns.less(1).value_or(false))
    reject(kName, "the kernel ", weight.type(), " is larger than the padded image ", x.type());
  const auto expect = [&](const Tensor& t, int64_t count, const char* name) {
    if (t.ndim() != 4 || t.dim(0).equals(x.dim(0)) == false || t.dim(1).equals(count) == false ||
        t.dim(2).equals(rows) == false || t.dim(3).equals(columns) == false)
      reject(kName, name, " must be ", text(Shape{x.dim(0), Dim(count), rows, columns}), ", not ",
             t.type());
  };
  expect(offset, a.deformable_groups * taps * 2, "offset");
  const Dim batch = x.dim(0), places = rows * columns, points = places * taps;
  // Source coordinates of each tap without offsets, [taps, rows, columns].
  Tensors base;
  for (size_t i = 0; i < 2; ++i) {
    const Tensor place =
        range_of(i == 0 ? rows : columns, x.dtype()) * static_cast<double>(stride[i]) -
        static_cast<double>(border[2 * i]);
    const Tensor tap = range_of(Dim(kernel[i]), x.dtype()) * static_cast<double>(dilation[i]);
    const Tensor sum =
        ops::reshape(tap, i == 0 ? Shape{kernel[0], 1, 1, 1} : Shape{1, kernel[1], 1, 1}) +
        ops::reshape(place, i == 0 ? Shape{1, 1, rows, 1} : Shape{1, 1, 1, columns});
    base.push_back(ops::reshape(ops::expand(sum, {Dim(kernel[0]), Dim(kernel[1]), rows, columns}),
                                {Dim(1), points}));
  }
  const bool masked = c.has(4);
  Tensors patches;
  for (int64_t g = 0; g < a.deformable_groups; ++g) {
    const int64_t each = channels / a.deformable_groups;
    const Tensor moved = ops::reshape(slice_axis(offset, 1, g * taps * 2, (g + 1) * taps * 2),
                                      {batch, Dim(taps), Dim(2), places});
    Tensors at;
    for (int64_t i = 0; i < 2; ++i)
      at.push_back(ops::reshape(slice_axis(moved, 2, i, i + 1), {batch, points}) +
                   base[static_cast<size_t>(i)]);
    const Tensor part = each == channels ? x : slice_axis(x, 1, g * each, (g + 1) * each);
    Tensor taken = ops::sample_points(part, ops::stack(at, 2));
    if (masked) {
      const Tensor mask = in_float32(c.operand(4));
      expect(mask, a.deformable_groups * taps, "mask");
      taken = taken *
              ops::reshape(slice_axis(mask, 1, g * taps, (g + 1) * taps), {batch, Dim(1), points});
    }
    patches.push_back(taken);
  }
  const Tensor all = patches.size() == 1 ? patches[0] : ops::concat(patches, 1);
  Tensors outs;
  const int64_t in_each = channels / a.groups, out_each = filters / a.groups;
  for (int64_t g = 0; g < a.groups; ++g)
    outs.push_back(ops::matmul(ops::reshape(slice_axis(weight, 0, g * out_each, (g + 1) * out_each),
                                            {Dim(out_each), Dim(in_each * taps)}),
                               ops::reshape(slice_axis(all, 1, g * in_each, (g + 1) * in_each),
                                            {batch, Dim(in_each * taps), places})));
  Tensor out = ops::reshape(outs.size() == 1 ? outs[0] : ops::concat(outs, 1),
                            {batch, Dim(filters), rows, columns});
  if (c.has(3)) {
    if (c.operand(3).ndim() != 1 || c.operand(3).dim(0).equals(filters) == false)
      reject(kName, "bias must be [", filters, "], not ", c.operand(3).type());
    out = out + ops::reshape(in_float32(c.operand(3)), {1, filters, 1, 1});
  }
  return {ops::cast(out, dtype)};
}

Tensors decompose_affine_channel(CallContext& c) {
  const auto a = c.attrs_as<AffineChannelAttrs>();
  const Tensor& x = c.operand(0);
  if (x.ndim() < 2) reject("affine_channel", "x must have at least 2 dimensions, not ", x.type());
  const bool last = a.data_layout == "NHWC";
  Tensor y = x;
  for (size_t i = 1; i < 3; ++i) {
    if (!c.has(i)) continue;
    const Tensor& v = c.operand(i);
    check_vector("affine_channel", v);
    if (v.dim(0).equals(x.dim(last ? -1 : 1)) == false)
      reject("affine_channel", i == 1 ? "scale " : "bias ", v.type(),
             " does not match the channels of x ", x.type());
    const Tensor each = per_channel(v, x.ndim(), last);
    y = i == 1 ? y * each : y + each;
  }
  const std::string act = a.act.value_or("");
  if (act == "relu") return {ops::maximum(y, number(0.0))};
  if (!act.empty() && act != "linear") reject("affine_channel", "act '", act, "' is not supported");
  return {y};
}

}  // namespace paddle::rules
