// Resize and Upsample, separably: each axis is a weighted sum of a few neighbors per output.

#include <algorithm>
#include <cmath>
#include <optional>

#include "onnx/ops/helpers.h"
#include "onnx/ops/resize_coordinates.h"
#include "ops/generated/indexing.h"
#include "ops/generated/math.h"
#include "ops/generated/shape.h"

namespace paddle::onnx {
namespace {

/// One value per index of an axis, broadcast over the others.
Tensor per_index(const std::vector<double>& values, int64_t axis, int64_t rank, DType dtype) {
  Shape shape(static_cast<size_t>(rank), Dim(1));
  shape[static_cast<size_t>(axis)] = static_cast<int64_t>(values.size());
  return ops::cast(
      ops::reshape(Tensor(Array::from(values, {static_cast<int64_t>(values.size())})), shape),
      dtype);
}

/// Resamples x along one axis.
Tensor resize_axis(const Tensor& x, const ResizeOptions& s, const AxisResize& a) {
  const int64_t last = a.input_size - 1;
  std::vector<double> outside(static_cast<size_t>(a.output_size), 0);
  std::vector<std::vector<int64_t>> indices;
  std::vector<std::vector<double>> weights;
  for (int64_t at = 0; at < a.output_size; ++at) {
    const double from =
        s.mode == "nearest" ? exact_source_coordinate(s, a, at) : source_coordinate(s, a, at);
    if (!(std::abs(from) < 0x1p40))
      fail(ErrorCode::kModel, "index ", at, " of axis ", a.axis, " reads index ", from,
           " of the input");
    if (s.coordinates == "tf_crop_and_resize" && (from < 0 || from > static_cast<double>(last)))
      outside[static_cast<size_t>(at)] = 1;
    Taps taps{0, {1}};
    int64_t base = 0;
    if (s.mode == "nearest") {
      base = nearest_index(s, from, a.scale);
    } else {
      base = static_cast<int64_t>(std::ceil(from)) - 1;
      taps = filter_taps(s, from - static_cast<double>(base), a.scale);
    }
    double total = 0;
    for (size_t k = 0; k < taps.weights.size(); ++k) {
      const int64_t index = base + taps.first + static_cast<int64_t>(k);
      if (s.exclude_outside && s.mode != "nearest" && (index < 0 || index > last))
        taps.weights[k] = 0;
      total += taps.weights[k];
      if (indices.size() <= k) {
        indices.emplace_back(static_cast<size_t>(a.output_size));
        weights.emplace_back(static_cast<size_t>(a.output_size));
      }
      indices[k][static_cast<size_t>(at)] = std::clamp(index, int64_t{0}, last);
      weights[k][static_cast<size_t>(at)] = taps.weights[k];
    }
    if (s.exclude_outside && total != 0)
      for (size_t k = 0; k < taps.weights.size(); ++k) weights[k][static_cast<size_t>(at)] /= total;
  }
  if (a.output_size == 0) return slice_axis(x, a.axis, 0, 0);
  Tensor out;
  for (size_t k = 0; k < indices.size(); ++k) {
    Tensor neighbors = ops::index_select(x, int_vector(indices[k]), a.axis);
    if (s.mode != "nearest")
      neighbors = neighbors * per_index(weights[k], a.axis, x.ndim(), x.dtype());
    out = out ? out + neighbors : neighbors;
  }
  if (std::find(outside.begin(), outside.end(), 1.0) == outside.end()) return out;
  const Tensor beyond = per_index(outside, a.axis, x.ndim(), DType::kBool);
  return ops::where(beyond, scalar(s.extrapolation, x.dtype()), out);
}

/// An axis with symbolic sizes; without `scale` it is the ratio of the sizes.
struct SymbolicResize {
  int64_t axis = 0;
  Dim input_size, output_size;
  std::optional<double> scale = {};
};

/// floor(size * scale), if the scale is a fraction that dims can express.
Dim scaled_dim(const Dim& size, double scale) {
  for (int64_t q = 1; q <= 64; ++q) {
    const double p = scale * static_cast<double>(q);
    if (p == std::floor(p) && p < 0x1p20)
      return floor_divide(size * Dim(static_cast<int64_t>(p)), q);
  }
  throw DataDependentError(ErrorCode::kModel, str("the size ", size, " must be constant"));
}

/// `exact_source_coordinate` computed at run time in float64; undefined for unsupported modes.
Tensor symbolic_source_coordinate(const ResizeOptions& s, const SymbolicResize& a) {
  const DType f = DType::kF64;
  const Tensor x = ops::cast(iota(a.output_size), f), in = dim_value(a.input_size, f),
               to = dim_value(a.output_size, f), one = scalar(1, f), two = scalar(2, f);
  const Fraction exact = a.scale ? simplest_fraction(*a.scale) : Fraction{};
  const Tensor p = a.scale ? scalar(exact.numerator, f) : to;
  const Tensor q = a.scale ? scalar(exact.denominator, f) : in;
  if (s.coordinates == "asymmetric") return x * q / p;
  const Tensor half_pixel = ((x * two + one) * q - p) / (p * two);
  if (s.coordinates == "half_pixel") return half_pixel;
  if (s.coordinates == "pytorch_half_pixel")
    return ops::where(ops::equal(to, one), scalar(0, f), half_pixel);
  if (s.coordinates != "align_corners") return {};
  // When shrinking by a scale, the exact length is not rounded.
  const bool shrinks = a.scale && *a.scale < 1;
  const Tensor numerator = shrinks ? x * (in - one) * q : x * (in - one);
  const Tensor denominator = shrinks ? p * in - q : to - one;
  return ops::where(ops::equal(denominator, scalar(0, f)), scalar(0, f), numerator / denominator);
}

/// Resamples with indices and weights computed at run time, in the dtypes of resize_coordinates.
Tensor resize_axis(const Tensor& x, const ResizeOptions& s, const SymbolicResize& a) {
  const auto must_be_known = [&] {
    throw DataDependentError(ErrorCode::kModel,
                             str("the size ", a.input_size, " must be constant"));
  };
  if (s.antialias || s.exclude_outside || s.mode == "cubic") must_be_known();
  const auto gather = [&](const Tensor& index) {
    const DType f = index.dtype();
    const Tensor inside =
        ops::minimum(ops::maximum(index, scalar(0, f)), dim_value(a.input_size, f) - scalar(1, f));
    return ops::index_select(x, ops::cast(inside, DType::kI64), a.axis);
  };
  if (s.mode == "nearest") {
    const Tensor from = symbolic_source_coordinate(s, a), half = scalar(0.5, DType::kF64);
    if (!from) must_be_known();
    const bool shrinks = a.scale && *a.scale < 1;
    if (s.nearest == "round_prefer_floor") return gather(ops::ceil(from - half));
    if (s.nearest == "round_prefer_ceil") return gather(ops::floor(from + half));
    if (s.nearest == "outward" && shrinks) return gather(ops::ceil(from));
    if (s.nearest == "floor" || s.nearest == "outward") return gather(ops::floor(from));
    if (s.nearest == "ceil") return gather(ops::ceil(from));
    fail(ErrorCode::kModel, "unknown nearest_mode '", s.nearest, "'");
  }
  const DType f = DType::kF32;
  const Tensor at = ops::cast(iota(a.output_size), f);
  const Tensor in = dim_value(a.input_size, f), one = scalar(1, f), half = scalar(0.5, f);
  const Tensor scale = a.scale ? scalar(*a.scale, f) : dim_value(a.output_size, f) / in;
  const Tensor out = a.scale && *a.scale < 1 ? in * scale : dim_value(a.output_size, f);
  Tensor from;
  if (s.coordinates == "asymmetric") {
    from = at / scale;
  } else if (s.coordinates == "half_pixel") {
    from = (at + half) / scale - half;
  } else if (s.coordinates == "pytorch_half_pixel") {
    from = ops::where(ops::equal(dim_value(a.output_size, f), one), scalar(0, f),
                      (at + half) / scale - half);
  } else if (s.coordinates == "align_corners") {
    from = ops::where(ops::equal(out, one), scalar(0, f), at * (in - one) / (out - one));
  } else {
    must_be_known();
  }
  const Tensor base = ops::ceil(from) - one, ratio = from - base;
  Shape shape(static_cast<size_t>(x.ndim()), Dim(1));
  shape[static_cast<size_t>(a.axis)] = a.output_size;
  const auto weighted = [&](const Tensor& index, const Tensor& weight) {
    return gather(index) * ops::cast(ops::reshape(weight, shape), x.dtype());
  };
  return weighted(base, one - ratio) + weighted(base + one, ratio);
}

/// Resizes axes of which at least one has a symbolic size.
Values resize_all(const Tensor& x, const ResizeOptions& s,
                  const std::vector<SymbolicResize>& axes) {
  const auto apply = [&](const Tensor& wide) {
    Tensor y = wide;
    for (const SymbolicResize& a : axes) y = resize_axis(y, s, a);
    return y;
  };
  if (s.mode == "nearest") return {apply(x)};
  const Tensor wide = is_float(x.dtype()) ? x : ops::cast(x, DType::kF32);
  return {ops::cast(compute_in_float32(wide, apply), x.dtype())};
}

/// Rounds and clamps to an integer dtype of up to 16 bits: cubic interpolation overshoots.
Tensor round_and_clamp(const Tensor& x, DType to) {
  const Tensor whole = ops::round(x);
  if (info(to).bits > 16) return whole;
  const auto [low, high] = integer_range(to);
  return ops::clip(whole, low, high);
}

Values resize_all(const Tensor& x, const ResizeOptions& s, const std::vector<AxisResize>& axes) {
  if (s.mode != "nearest" && s.mode != "linear" && s.mode != "cubic")
    fail(ErrorCode::kModel, "unknown mode '", s.mode, "'");
  Tensor out = s.mode == "nearest" || is_float(x.dtype()) ? x : ops::cast(x, DType::kF32);
  const auto apply = [&](const Tensor& wide) {
    Tensor y = wide;
    for (const AxisResize& a : axes) {
      if (a.output_size < 0 || a.output_size > max_listed_indices())
        fail(ErrorCode::kModel, "the size ", a.output_size, " is impossible");
      if (a.input_size == 0) fail(ErrorCode::kModel, "an axis without elements cannot be resized");
      if (a.input_size == a.output_size && a.scale == 1 && s.coordinates != "tf_crop_and_resize")
        continue;
      y = resize_axis(y, s, a);
    }
    return y;
  };
  out = s.mode == "nearest" ? apply(out) : compute_in_float32(out, apply);
  if (out.dtype() != x.dtype() && (s.mode == "cubic" || s.antialias))
    out = round_and_clamp(out, x.dtype());
  return {ops::cast(out, x.dtype())};
}

/// Scales for all axes of an old opset.
Values resize_by_scales(const Tensor& x, const ResizeOptions& s,
                        const std::vector<double>& scales) {
  if (static_cast<int64_t>(scales.size()) != x.ndim())
    fail(ErrorCode::kModel, scales.size(), " scales for ", x.ndim(), " axes");
  if (!is_constant(x.shape())) {
    std::vector<SymbolicResize> axes;
    for (int64_t i = 0; i < x.ndim(); ++i) {
      const double scale = scales[static_cast<size_t>(i)];
      if (!(scale > 0)) fail(ErrorCode::kModel, "the scale ", scale, " is not positive");
      if (scale != 1) axes.push_back({i, x.dim(i), scaled_dim(x.dim(i), scale), scale});
    }
    return resize_all(x, s, axes);
  }
  std::vector<AxisResize> axes;
  for (int64_t i = 0; i < x.ndim(); ++i) {
    AxisResize a;
    a.axis = i;
    a.scale = scales[static_cast<size_t>(i)];
    if (a.scale == 1) continue;
    if (!(a.scale > 0)) fail(ErrorCode::kModel, "the scale ", a.scale, " is not positive");
    a.exact = simplest_fraction(a.scale);
    a.input_size = constant_dim(x, i);
    a.output_size = scaled_size(a.input_size, a.scale);
    axes.push_back(a);
  }
  return resize_all(x, s, axes);
}

std::vector<double> constant_floats(const NodeCall& c, size_t i) {
  const Array a = c.constant_array(i);
  std::vector<double> out;
  for (int64_t k = 0; k < a.size(); ++k) out.push_back(a.number(k));
  return out;
}

Values upsample(NodeCall& c) {
  const ResizeOptions s{c.string_attr("mode", "nearest"), "asymmetric", "floor"};
  return resize_by_scales(c.tensor(0), s,
                          c.has_input(1) ? constant_floats(c, 1) : c.floats_attr("scales"));
}

/// Indices round up along axes that shrink.
Values resize_10(NodeCall& c) {
  const ResizeOptions s{c.string_attr("mode", "nearest"), "asymmetric", "outward"};
  return resize_by_scales(c.tensor(0), s, constant_floats(c, 1));
}

Values resize(NodeCall& c) {
  const Tensor& x = c.tensor(0);
  ResizeOptions s;
  s.mode = c.string_attr("mode", "nearest");
  s.coordinates = c.string_attr("coordinate_transformation_mode", "half_pixel");
  s.nearest = c.string_attr("nearest_mode", "round_prefer_floor");
  s.cubic = c.float_attr("cubic_coeff_a", -0.75);
  s.extrapolation = c.float_attr("extrapolation_value", 0);
  s.exclude_outside = c.bool_attr("exclude_outside", false);
  s.antialias = c.bool_attr("antialias", false);
  auto axes = c.ints_attr("axes", leading_axes(x.ndim()));
  for (int64_t& a : axes) a = c.axis(a, x.ndim());
  const size_t n = axes.size();
  const auto given = [&](size_t i) {
    return c.has_input(i) &&
           !(c.value(i).shape().size() == 1 && c.value(i).shape()[0].equals(0).value_or(false));
  };
  std::vector<double> roi = given(1) ? constant_floats(c, 1) : std::vector<double>{};
  const std::vector<double> scales = given(2) ? constant_floats(c, 2) : std::vector<double>{};
  const std::string policy = c.string_attr("keep_aspect_ratio_policy", "stretch");
  const Shape goals = given(3) ? c.dims_operand(3) : Shape{};
  if (!is_constant(x.shape()) || !is_constant(goals)) {
    c.check((scales.size() == n) != (goals.size() == n), "scales or sizes for ", n,
            " axes are needed");
    if (policy != "stretch" || s.coordinates == "tf_crop_and_resize")
      throw DataDependentError(ErrorCode::kModel, "the sizes must be constant");
    std::vector<SymbolicResize> all;
    for (size_t i = 0; i < n; ++i) {
      const Dim& from = x.dim(axes[i]);
      if (!scales.empty()) {
        c.check(scales[i] > 0, "the scale ", scales[i], " is not positive");
        if (scales[i] != 1) all.push_back({axes[i], from, scaled_dim(from, scales[i]), scales[i]});
      } else if (!from.same(goals[i])) {
        all.push_back({axes[i], from, goals[i]});
      }
    }
    return resize_all(x, s, all);
  }
  const std::vector<int64_t> sizes = concrete(goals);
  c.check((scales.size() == n) != (sizes.size() == n), "scales or sizes for ", n,
          " axes are needed");
  double common = 0;  // one scale for all axes if the aspect ratio is kept
  Fraction exact_common;
  if (!sizes.empty() && policy != "stretch")
    for (size_t i = 0; i < n; ++i) {
      const Fraction exact = {static_cast<double>(sizes[i]),
                              static_cast<double>(constant_dim(x, axes[i]))};
      const double scale = exact.numerator / exact.denominator;
      const bool better = policy == "not_larger" ? scale < common : scale > common;
      if (i == 0 || better) {
        common = scale;
        exact_common = exact;
      }
    }
  std::vector<AxisResize> all;
  for (size_t i = 0; i < n; ++i) {
    AxisResize a;
    a.axis = axes[i];
    if (roi.size() == 2 * n) {
      a.start = roi[i];
      a.end = roi[i + n];
    }
    const bool crop = s.coordinates == "tf_crop_and_resize" && (a.start != 0 || a.end != 1);
    if (!scales.empty() && scales[i] == 1 && !crop) continue;
    if (!sizes.empty() && common == 0 && x.dim(a.axis).equals(sizes[i]).value_or(false) && !crop)
      continue;
    a.input_size = constant_dim(x, a.axis);
    const auto in = static_cast<double>(a.input_size);
    if (!scales.empty()) {
      a.scale = scales[i];
      c.check(a.scale > 0, "the scale ", a.scale, " is not positive");
      c.check(std::abs(in * a.scale) < 0x1p40, "the scale ", a.scale, " is too large");
      a.exact = simplest_fraction(a.scale);
      a.output_size = scaled_size(a.input_size, a.scale);
    } else if (common != 0) {
      a.scale = common;
      a.exact = exact_common;
      c.check(std::abs(in * common) < 0x1p40, "the scale ", common, " is too large");
      a.output_size = static_cast<int64_t>(std::floor(in * common + 0.5));
    } else {
      a.exact = {static_cast<double>(sizes[i]), in};
      a.scale = a.exact.numerator / a.exact.denominator;
      a.output_size = sizes[i];
    }
    all.push_back(a);
  }
  return resize_all(x, s, all);
}

}  // namespace

/// Upsample of com.microsoft.nchwc: integer scales, coordinates as in Resize.
Values nchwc_upsample_rule(NodeCall& c) {
  const auto scales = c.ints_attr("scales");
  const ResizeOptions s{c.string_attr("mode", "nearest"),
                        c.string_attr("coordinate_transformation_mode", "asymmetric"), "floor"};
  return resize_by_scales(c.tensor(0), s, {scales.begin(), scales.end()});
}

OperatorTable resize_operators() {
  static constexpr Operator operators[] = {
      {"Upsample", 1, upsample},
      {"Resize", 10, resize_10},
      {"Resize", 11, resize},
  };
  return operators;
}

}  // namespace paddle::onnx
