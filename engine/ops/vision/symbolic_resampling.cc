#include "ops/vision/symbolic_resampling.h"

#include "ops/generated/creation.h"
#include "ops/generated/math.h"
#include "ops/generated/reduce.h"
#include "ops/generated/shape.h"
#include "ops/generated/vision.h"

namespace paddle::rules {
namespace {

Tensor range(const Dim& count, DType dtype) {
  return ops::arange(AttrValue(0), AttrValue(count), AttrValue(1), dtype);
}

Tensor as_f64(const Tensor& condition) { return ops::cast(condition, DType::kF64); }

/// Sizes, indices and steps of one axis; rows are places of the result, columns of the input.
struct Axis {
  Tensor in, out;      ///< sizes, 0-D
  Tensor row, column;  ///< [out, 1] and [1, in]
  Tensor last;         ///< the largest index of the input
  Tensor ratio;        ///< input places per place of the result
  Tensor corner_step;  ///< the same if the corners are aligned

  Axis(const Dim& in_size, const Dim& out_size, double factor)
      : in(dim_value(in_size, DType::kF64)),
        out(dim_value(out_size, DType::kF64)),
        row(ops::unsqueeze(range(out_size, DType::kF64), {1})),
        column(ops::unsqueeze(range(in_size, DType::kF64), {0})),
        last(in - 1.0),
        ratio(factor == 0 ? in / out : full_of({}, 1 / factor, DType::kF64)),
        corner_step(last / ops::maximum(out - 1.0, number(1.0))) {}
};

Tensor nearest(const Axis& axis, bool corners) {
  const Tensor place = corners ? axis.corner_step * axis.row + 0.5 : axis.ratio * axis.row;
  return as_f64(ops::equal(axis.column, ops::minimum(ops::floor(place), axis.last)));
}

Tensor linear(const Axis& axis, bool corners, int64_t align_mode) {
  Tensor place = corners           ? axis.corner_step * axis.row
                 : align_mode == 1 ? axis.ratio * axis.row
                                   : axis.ratio * (axis.row + 0.5) - 0.5;
  place = ops::minimum(ops::maximum(place, number(0.0)), axis.last);
  return ops::maximum(1.0 - ops::abs(axis.column - place), number(0.0));
}

/// Keys' cubic convolution with a = -0.75 at distances up to 1, and from 1 to 2.
Tensor cubic_near(const Tensor& t) { return ((t * 1.25) - 2.25) * t * t + 1.0; }
Tensor cubic_far(const Tensor& t) { return ((t * -0.75 + 3.75) * t - 6.0) * t + 3.0; }

Tensor bicubic(const Axis& axis, bool corners) {
  const Tensor place = corners ? axis.corner_step * axis.row : axis.ratio * (axis.row + 0.5) - 0.5;
  const Tensor base = ops::floor(place), t = place - base;
  const Tensor taps[] = {cubic_far(t + 1.0), cubic_near(t), cubic_near(1.0 - t),
                         cubic_far(2.0 - t)};
  Tensor sum;
  for (int k = 0; k < 4; ++k) {
    const Tensor index =
        ops::minimum(ops::maximum(base + static_cast<double>(k - 1), number(0.0)), axis.last);
    const Tensor tap = taps[k] * as_f64(ops::equal(axis.column, index));
    sum = sum.defined() ? sum + tap : tap;
  }
  return sum;
}

/// Means of the windows that divide the axis.
Tensor area(const Dim& in, const Dim& out) {
  const Tensor size = dim_value(in, DType::kI64), count = dim_value(out, DType::kI64);
  const Tensor row = ops::unsqueeze(range(out, DType::kI64), {1});
  const Tensor column = ops::unsqueeze(range(in, DType::kI64), {0});
  const Tensor begin = ops::floor_divide(row * size, count);
  const Tensor end = ops::floor_divide((row + integer(1)) * size + count - integer(1), count);
  const Tensor inside =
      ops::logical_and(ops::greater_equal(column, begin), ops::less_than(column, end));
  return as_f64(inside) / as_f64(end - begin);
}

/// The filter of an antialiased resampling is as wide as the step when downsampling: a triangle, or
/// Keys' cubic with a = -0.5.
Tensor antialiased(const Axis& axis, bool corners, bool cubic) {
  const Tensor step = corners ? axis.corner_step : axis.ratio;
  const Tensor width = ops::maximum(step, number(1.0)), reach = width * (cubic ? 2.0 : 1.0);
  const Tensor center = step * (axis.row + 0.5);
  const Tensor begin = ops::maximum(ops::floor(center - reach + 0.5), number(0.0));
  const Tensor end = ops::minimum(ops::floor(center + reach + 0.5), axis.in);
  const Tensor t = ops::abs((axis.column - center + 0.5) / width);
  Tensor filter = ops::maximum(1.0 - t, number(0.0));
  if (cubic) {
    const Tensor inner = (t * 1.5 - 2.5) * t * t + 1.0;
    const Tensor outer = ((t * -0.5 + 2.5) * t - 4.0) * t + 2.0;
    filter = ops::where(ops::less_than(t, number(1.0)), inner,
                        outer * as_f64(ops::less_than(t, number(2.0))));
  }
  const Tensor inside =
      ops::logical_and(ops::greater_equal(axis.column, begin), ops::less_than(axis.column, end));
  filter = filter * as_f64(inside);
  return filter / ops::sum(filter, Axes{1}, std::nullopt, true);
}

}  // namespace

Tensor symbolic_resampling_weights(const InterpolateAttrs& a, const Dim& in, const Dim& out,
                                   double factor) {
  const Axis axis(in, out, a.recompute_scale_factor.value_or(false) ? 0 : factor);
  if (a.antialias) return antialiased(axis, a.align_corners, a.mode == "bicubic");
  if (a.mode == "nearest") return nearest(axis, a.align_corners);
  if (a.mode == "area") return area(in, out);
  if (a.mode == "bicubic") return bicubic(axis, a.align_corners);
  return linear(axis, a.align_corners, a.align_mode);
}

Tensor symbolic_grid(const Dim& size, bool align_corners) {
  const Tensor at = range(size, DType::kF64), whole = dim_value(size, DType::kF64);
  if (!align_corners) return (at * 2.0 + 1.0) / whole - 1.0;
  // One pixel is at 0.
  const Tensor several = as_f64(ops::greater_than(whole, number(1.0)));
  return at * 2.0 / ops::maximum(whole - 1.0, number(1.0)) - several;
}

}  // namespace paddle::rules
