// Rules of interpolate.yaml: resampling.

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "base/limits.h"
#include "ops/core/compose.h"
#include "ops/generated/indexing.h"
#include "ops/generated/linalg.h"
#include "ops/generated/math.h"
#include "ops/generated/shape.h"
#include "ops/generated/vision.h"
#include "ops/generated/vision_rules.h"
#include "ops/nn/channels.h"
#include "ops/nn/window.h"
#include "ops/vision/resample.h"
#include "ops/vision/symbolic_resampling.h"

namespace paddle::rules {
namespace {

/// Products of sizes above which weights are checked against the memory first.
constexpr int64_t kMaxRows = int64_t{1} << 24;

/// Keys' cubic convolution with a = -0.75.
double cubic(double t) {
  constexpr double a = -0.75;
  t = std::abs(t);
  if (t <= 1) return ((a + 2) * t - (a + 3)) * t * t + 1;
  return t < 2 ? ((a * t - 5 * a) * t + 8 * a) * t - 4 * a : 0;
}

/// The distance in x of neighbors in the result; `factor` is 0 if the size of the result was given.
double step_of(const InterpolateAttrs& a, int64_t in, int64_t out, double factor) {
  if (a.align_corners)
    return out > 1 ? static_cast<double>(in - 1) / static_cast<double>(out - 1) : 0.0;
  return factor == 0 || a.recompute_scale_factor.value_or(false)
             ? static_cast<double>(in) / static_cast<double>(out)
             : 1 / factor;
}

/// Where the nearest elements of x are.
Tensor nearest_places(const InterpolateAttrs& a, int64_t in, int64_t out, double factor) {
  check_index_count("interpolate", out);
  const double step = step_of(a, in, out, factor), shift = a.align_corners ? 0.5 : 0.0;
  std::vector<int64_t> places(static_cast<size_t>(out));
  for (int64_t o = 0; o < out; ++o)
    places[static_cast<size_t>(o)] =
        std::min(in - 1, static_cast<int64_t>(step * static_cast<double>(o) + shift));
  return Tensor(Array::from(places, {out}));
}

std::vector<double> resampling(const std::string& mode, int64_t in, int64_t out, double step,
                               bool corners, int64_t align_mode) {
  std::vector<double> matrix(static_cast<size_t>(out * in), 0.0);
  const auto add = [&](int64_t o, int64_t k, double w) {
    matrix[static_cast<size_t>(o * in + std::clamp<int64_t>(k, 0, in - 1))] += w;
  };
  for (int64_t o = 0; o < out; ++o) {
    const double at = static_cast<double>(o);
    if (mode == "area") {
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

/// Resampling along an axis whose results have two neighbors in x each: rows are multiplied and
/// added, where a product with the matrix would mostly multiply by zero.
Tensor mix_neighbors(const Tensor& x, int64_t axis, const std::vector<double>& matrix, int64_t in,
                     int64_t out) {
  std::vector<int64_t> places[2];
  std::vector<double> weights[2];
  for (int64_t o = 0; o < out; ++o) {
    const double* const row = matrix.data() + o * in;
    const int64_t first =
        std::find_if(row, row + in, [](double weight) { return weight != 0; }) - row;
    const int64_t next = std::min(first + 1, in - 1);
    places[0].push_back(first);
    places[1].push_back(next);
    weights[0].push_back(row[first]);
    weights[1].push_back(next > first ? row[next] : 0);
  }
  Shape shape(static_cast<size_t>(x.ndim() - axis), Dim(1));
  shape[0] = Dim(out);
  Tensor sum;
  for (size_t i = 0; i < 2; ++i) {
    const Tensor weight =
        ops::cast(ops::reshape(Tensor(Array::from(weights[i], {out})), shape), x.dtype());
    const Tensor term =
        ops::multiply(ops::index_select(x, Tensor(Array::from(places[i], {out})), axis), weight);
    sum = i == 0 ? term : ops::add(sum, term);
  }
  return sum;
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

/// Weights [out, in] of known sizes.
Tensor resampling_weights(const InterpolateAttrs& a, int64_t in, int64_t out, double factor) {
  if (in > limits().memory / 16 / out)
    reject("interpolate", "weights for ", out, " places of ", in,
           " each would take more than half of the memory");
  const double step = step_of(a, in, out, factor);
  return Tensor(Array::from(a.antialias
                                ? smooth_resampling(a.mode, in, out, step)
                                : resampling(a.mode, in, out, step, a.align_corners, a.align_mode),
                            {out, in}));
}

/// floor(size * factor). A factor of a symbolic size must be a fraction whose denominator is a
/// power of two, so that the product is exact.
Dim scaled_size(const Dim& size, double factor) {
  if (size.is_constant()) {
    const double scaled = static_cast<double>(size.value()) * factor;
    if (!(scaled < 0x1p31))
      reject("interpolate", "scale_factor ", factor, " makes the result too large");
    return static_cast<int64_t>(scaled);
  }
  for (int64_t denominator = 1; denominator <= 1024; denominator *= 2) {
    const double numerator = factor * static_cast<double>(denominator);
    if (numerator == std::floor(numerator) && numerator < 0x1p31)
      return floor_divide(size * static_cast<int64_t>(numerator), denominator);
  }
  reject("interpolate", "scale_factor ", factor, " of the symbolic size '", size,
         "' must be a multiple of 1/1024; give the size of the result instead");
}

/// Size of the result along spatial axis i of n, and the scale factor, 0 if the size was given.
std::pair<Dim, double> result_size(const InterpolateAttrs& a, size_t i, size_t n, const Dim& in) {
  if (!a.size.is_none()) {
    const bool list = a.size.is_list();
    if (list && a.size.as_list().size() != n && a.size.as_list().size() != 1)
      reject("interpolate", "size must be a number or ", n, " numbers, not ", a.size);
    const AttrValue& each = list ? a.size.as_list()[a.size.as_list().size() == n ? i : 0] : a.size;
    return {each.as_dim(), 0.0};
  }
  const auto factors = a.scale_factor.is_list()
                           ? a.scale_factor.as_doubles()
                           : std::vector<double>(n, a.scale_factor.as_double());
  if (factors.size() != n && factors.size() != 1)
    reject("interpolate", "scale_factor must have ", n, " numbers");
  const double factor = factors[factors.size() == 1 ? 0 : i];
  if (!(factor > 0)) reject("interpolate", "scale_factor must be positive, not ", factor);
  return {scaled_size(in, factor), factor};
}

}  // namespace

Tensors decompose_interpolate(CallContext& c) {
  const auto a = c.attrs_as<InterpolateAttrs>();
  if (a.align_corners && (a.mode == "nearest" || a.mode == "area"))
    reject("interpolate", "align_corners is for linear and cubic modes, not ", a.mode);
  return {resample(c.operand(0), a)};
}

Tensor resample(const Tensor& given, const InterpolateAttrs& a) {
  Tensor x = given;
  const char* op = "interpolate";
  if (x.ndim() < 3 || x.ndim() > 5) reject(op, "x must have 3 to 5 dimensions, not ", x.type());
  const auto n = static_cast<size_t>(x.ndim() - 2);
  const bool last = a.data_format && channels_last(*a.data_format);
  if (a.size.is_none() == a.scale_factor.is_none())
    reject(op, "one of size and scale_factor must be given");
  const size_t planes = a.mode == "bilinear" || a.mode == "bicubic" ? 2
                        : a.mode == "linear"                        ? 1
                        : a.mode == "trilinear"                     ? 3
                                                                    : n;
  if (planes != n) reject(op, "mode '", a.mode, "' is not for ", x.type());
  if (a.antialias && a.mode != "bilinear" && a.mode != "bicubic")
    reject(op, "antialias is for the modes bilinear and bicubic, not ", a.mode);
  const int64_t first = last ? 1 : 2;
  std::vector<std::pair<Dim, double>> sizes;
  for (size_t i = 0; i < n; ++i) {
    const int64_t axis = first + static_cast<int64_t>(i);
    const Dim in = x.dim(axis);
    if (in.less(1).value_or(false)) reject(op, "axis ", axis, " of ", x.type(), " is empty");
    sizes.push_back(result_size(a, i, n, in));
    if (sizes.back().first.less(1).value_or(false)) reject(op, "the result would be empty");
  }
  if (x.dim(0).equals(0) == true || x.dim(last ? -1 : 1).equals(0) == true) {
    Shape shape = x.shape();
    for (size_t i = 0; i < n; ++i) shape[static_cast<size_t>(first) + i] = sizes[i].first;
    return ops::reshape(x, shape);  // without planes there is nothing to resample
  }
  const bool nearest = a.mode == "nearest", linear = a.mode.ends_with("linear") && !a.antialias;
  for (size_t turn = 0; turn < n; ++turn) {
    // Rows are taken from the last axis on, so that whole rows of a larger image are copied.
    const size_t i = nearest || linear ? n - 1 - turn : turn;
    const int64_t axis = first + static_cast<int64_t>(i);
    const Dim in = x.dim(axis);
    const auto& [out, factor] = sizes[i];
    const bool known = in.is_constant() && out.is_constant();
    if (nearest && known)
      x = ops::index_select(x, nearest_places(a, in.value(), out.value(), factor), axis);
    else if (linear && known && axis + 1 < x.ndim() && out.value() <= kMaxRows / in.value())
      x = mix_neighbors(
          x, axis,
          resampling(a.mode, in.value(), out.value(), step_of(a, in.value(), out.value(), factor),
                     a.align_corners, a.align_mode),
          in.value(), out.value());
    else
      x = map_axis(x, axis,
                   known ? resampling_weights(a, in.value(), out.value(), factor)
                         : symbolic_resampling_weights(a, in, out, factor));
  }
  return x;
}

Tensors decompose_affine_grid(CallContext& c) {
  const auto a = c.attrs_as<AffineGridAttrs>();
  const Tensor& theta = c.operand(0);
  const size_t n = a.out_shape.size() - 2;
  if ((a.out_shape.size() != 4 && a.out_shape.size() != 5) || theta.ndim() != 3 ||
      theta.dim(1).equals(static_cast<int64_t>(n)) == false ||
      theta.dim(2).equals(static_cast<int64_t>(n) + 1) == false)
    reject("affine_grid", "theta ", theta.type(), " does not fit the shape ", text(a.out_shape));
  Tensors axes;
  for (size_t i = 0; i < n; ++i) {
    if (a.out_shape[i + 2].less(1).value_or(false))
      reject("affine_grid", "out_shape ", text(a.out_shape), " is empty");
    if (!a.out_shape[i + 2].is_constant()) {
      axes.push_back(ops::cast(symbolic_grid(a.out_shape[i + 2], a.align_corners), theta.dtype()));
      continue;
    }
    const int64_t size = a.out_shape[i + 2].value();
    check_index_count("affine_grid", size);
    std::vector<double> places;
    for (int64_t k = 0; k < size; ++k) {
      const auto at = static_cast<double>(k), whole = static_cast<double>(size);
      places.push_back(!a.align_corners ? (2 * at + 1) / whole - 1
                       : size == 1      ? 0.0
                                        : 2 * at / (whole - 1) - 1);
    }
    axes.push_back(ops::cast(Tensor(Array::from(places, {size})), theta.dtype()));
  }
  // Rows of (x, y[, z], 1): the last axis of the image is the first coordinate.
  const Tensors grid = ops::meshgrid(axes);
  Tensors columns;
  for (size_t i = n; i-- > 0;) columns.push_back(ops::reshape(grid[i], Shape{-1}));
  columns.push_back(ones_like(columns[0]));
  const Tensor places = ops::matmul(ops::stack(columns, 1), ops::matrix_transpose(theta));
  Shape shape = {theta.dim(0)};
  shape.insert(shape.end(), a.out_shape.begin() + 2, a.out_shape.end());
  shape.push_back(static_cast<int64_t>(n));
  return {ops::reshape(places, shape)};
}

}  // namespace paddle::rules
