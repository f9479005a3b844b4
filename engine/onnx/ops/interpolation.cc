#include "onnx/ops/interpolation.h"

#include "onnx/ops/helpers.h"
#include "ops/generated/creation.h"
#include "ops/generated/indexing.h"
#include "ops/generated/math.h"
#include "ops/generated/shape.h"

namespace paddle::onnx {
namespace {

constexpr size_t kMaxTaps = 4096;  // neighbors per point

/// Neighbor indices along one axis and their weights.
struct AxisTaps {
  Tensors indices, weights;
};

Tensor reflected(const Tensor& x, double low, double high) {
  const double span = high - low;
  if (span <= 0) return ops::full_like(x, 0.0);
  const Tensor phase = ops::remainder(x - low, scalar(2 * span, x.dtype()));
  return ops::where(ops::greater_than(phase, scalar(span, x.dtype())), 2 * span - phase, phase) +
         low;
}

Tensor cubic_weight(const Tensor& distance) {
  constexpr double a = -0.75;
  const Tensor x = ops::abs(distance), x2 = x * x, x3 = x2 * x;
  const Tensor near = x3 * (a + 2) - x2 * (a + 3) + 1.0;
  const Tensor far = x3 * a - x2 * (5 * a) + x * (8 * a) - 4 * a;
  const Tensor outer =
      ops::where(ops::less_than(x, scalar(2, x.dtype())), far, scalar(0, x.dtype()));
  return ops::where(ops::less_equal(x, scalar(1, x.dtype())), near, outer);
}

AxisTaps filter_taps(const Tensor& in, int64_t size, const InterpolationOptions& o) {
  const auto last = static_cast<double>(size - 1);
  const double low = o.align_corners ? 0 : -0.5, high = o.align_corners ? last : last + 0.5;
  Tensor x = o.mode == "nearest" ? ops::round(in) : in;
  // Cubic neighbors are clamped one by one.
  if (o.padding == "border" && o.mode != "cubic") x = ops::clip(x, 0.0, last);
  if (o.padding == "reflection") {
    const Tensor outside = ops::logical_or(ops::less_than(x, scalar(low, x.dtype())),
                                           ops::greater_than(x, scalar(high, x.dtype())));
    x = ops::where(outside, reflected(x, low, high), x);
    if (o.mode == "nearest") x = ops::trunc(x);
  }
  // Keeps infinite and NaN coordinates within the integer range.
  x = ops::clip(ops::where(ops::isnan(x), scalar(-8, x.dtype()), x), -16.0, last + 16);
  const Tensor base = ops::floor(x);
  AxisTaps taps;
  const int first = o.mode == "cubic" ? -1 : 0;
  const int count = o.mode == "cubic" ? 4 : o.mode == "linear" ? 2 : 1;
  for (int k = first; k < first + count; ++k) {
    Tensor index = base + static_cast<double>(k);
    Tensor weight;
    if (o.mode == "linear") weight = 1.0 - ops::abs(x - index);
    if (o.mode == "cubic") weight = cubic_weight(x - index);
    if (o.padding == "zeros") {
      const Tensor inside = ops::logical_and(ops::greater_equal(index, scalar(0, x.dtype())),
                                             ops::less_equal(index, scalar(last, x.dtype())));
      const Tensor kept = ops::cast(inside, x.dtype());
      weight = weight ? weight * kept : kept;
    } else if (o.padding == "reflection") {
      index = ops::trunc(reflected(index, low, high));
    }
    taps.indices.push_back(ops::cast(ops::clip(index, 0.0, last), DType::kI64));
    taps.weights.push_back(weight);
  }
  return taps;
}

}  // namespace

Tensor interpolate_at(const Tensor& x, const Tensors& coordinates,
                      const InterpolationOptions& options) {
  const size_t rank = coordinates.size();
  const Dim batch = x.dim(0), channels = x.dim(1), points = coordinates[0].dim(1);
  int64_t volume = 1;
  std::vector<AxisTaps> axes;
  for (size_t i = 0; i < rank; ++i) {
    const int64_t size = constant_dim(x, static_cast<int64_t>(i) + 2);
    volume *= size;
    axes.push_back(filter_taps(coordinates[i], size, options));
  }
  // Channels last, so that a point is one row.
  const Tensor rows =
      ops::reshape(ops::transpose(ops::reshape(x, {batch, channels, Dim(volume)}), {0, 2, 1}),
                   {batch * volume, channels});
  const Tensor start = ops::unsqueeze(iota(batch), {1});
  const size_t taps_per_axis = axes[0].indices.size();
  size_t combinations = 1;
  for (size_t i = 0; i < rank; ++i)
    if ((combinations *= taps_per_axis) > kMaxTaps)
      fail(ErrorCode::kModel, "sampling along ", rank, " axes is not supported");
  Tensor out;
  for (size_t k = 0; k < combinations; ++k) {
    Tensor index = start, weight;
    size_t rest = k;
    for (size_t i = 0; i < rank; ++i, rest /= taps_per_axis) {
      const Tensor& w = axes[i].weights[rest % taps_per_axis];
      index = index * int_scalar(constant_dim(x, static_cast<int64_t>(i) + 2)) +
              axes[i].indices[rest % taps_per_axis];
      if (w) weight = weight ? weight * w : w;
    }
    Tensor values = ops::index_select(rows, ops::reshape(index, Shape{-1}), 0);
    if (weight) values = values * ops::reshape(ops::cast(weight, x.dtype()), {batch * points, 1});
    out = out ? out + values : values;
  }
  return ops::transpose(ops::reshape(out, {batch, points, channels}), {0, 2, 1});
}

}  // namespace paddle::onnx
