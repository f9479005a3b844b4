// Rules of special.yaml.

#include <algorithm>
#include <cmath>

#include "ops/core/compose.h"
#include "ops/generated/creation.h"
#include "ops/generated/indexing.h"
#include "ops/generated/math.h"
#include "ops/generated/random.h"
#include "ops/generated/reduce.h"
#include "ops/generated/shape.h"
#include "ops/generated/sorting.h"
#include "ops/generated/special.h"
#include "ops/generated/special_rules.h"

namespace paddle::rules {
namespace {

constexpr int64_t kMaxIndices = int64_t{1} << 28;

/// y^(x-1) exp(-y) / gamma(x), the slope of P(x, y) in y.
Tensor gamma_density(const Tensor& x, const Tensor& y) {
  return ops::exp((x - 1.0) * ops::log(y) - y - ops::lgamma(x));
}

}  // namespace

Tensors vjp_gammainc(VjpContext& c) {
  Tensors out = c.gradients();
  const Tensor &x = c.operand(0), &y = c.operand(1), &g = c.cotangent();
  if (c.needs(0)) out[0] = sum_to(g * ops::gammainc_slope(x, y), x.shape());
  if (c.needs(1)) out[1] = sum_to(g * gamma_density(x, y), y.shape());
  return out;
}

Tensors vjp_gammaincc(VjpContext& c) {
  Tensors out = vjp_gammainc(c);
  for (Tensor& gradient : out)
    if (gradient.defined()) gradient = -gradient;
  return out;
}

Tensors decompose_as_strided(CallContext& c) {
  const auto a = c.attrs_as<AsStridedAttrs>();
  const Tensor& x = c.operand(0);
  if (a.shape.size() != a.stride.size())
    reject("as_strided", "shape and stride differ in length: ", str(a.shape), " and ",
           str(a.stride));
  // Steps of this size times up to kMaxIndices fit 64 bits.
  constexpr int64_t kMaxStep = int64_t{1} << 34;
  if (a.offset < 0 || a.offset > kMaxStep)
    reject("as_strided", "offset must be from 0 to ", kMaxStep, ", not ", a.offset);
  int64_t count = 1, low = a.offset, high = a.offset;
  for (size_t i = 0; i < a.shape.size(); ++i) {
    if (a.shape[i] < 0) reject("as_strided", "negative size in shape ", str(a.shape));
    if (a.shape[i] > 0 && count > kMaxIndices / a.shape[i])
      reject("as_strided", "more than ", kMaxIndices, " elements");
    count *= a.shape[i];
    if (a.stride[i] < -kMaxStep || a.stride[i] > kMaxStep)
      reject("as_strided", "stride must be from ", -kMaxStep, " to ", kMaxStep, ", not ",
             a.stride[i]);
    if (count == 0) continue;
    (a.stride[i] < 0 ? low : high) += std::max<int64_t>(0, a.shape[i] - 1) * a.stride[i];
  }
  const Dim size = element_count(std::span<const Dim>(x.shape()));
  if (count > 0 && (low < 0 || size.less(high + 1) == true))
    reject("as_strided", "elements ", low, " to ", high, " are out of range for ", x.type());
  std::vector<int64_t> indices(static_cast<size_t>(count)), at(a.shape.size(), 0);
  int64_t place = a.offset;
  for (int64_t& index : indices) {
    index = place;
    for (size_t axis = at.size(); axis-- > 0;) {
      place += a.stride[axis];
      if (++at[axis] < a.shape[axis]) break;
      place -= a.shape[axis] * a.stride[axis];
      at[axis] = 0;
    }
  }
  const Tensor index(Array::from(indices, {count}));
  return {ops::reshape(ops::index_select(flat(x), index), to_shape(a.shape))};
}

Tensors decompose_fill_diagonal(CallContext& c) {
  const auto a = c.attrs_as<FillDiagonalAttrs>();
  const Tensor& x = c.operand(0);
  if (x.ndim() < 2) reject("fill_diagonal", "x must have at least two dimensions, not ", x.type());
  const auto along = [&](int64_t axis) {
    Shape shape(x.shape().size(), Dim(1));
    shape[static_cast<size_t>(axis)] = x.dim(axis);
    return ops::reshape(
        ops::arange(AttrValue(0), AttrValue(x.dim(axis)), AttrValue(1), DType::kI64), shape);
  };
  Tensor mask;
  if (x.ndim() == 2) {
    Tensor row = along(0);
    // Every row of n + 1 continues the diagonal, after a gap of one.
    if (a.wrap) row = ops::remainder(row, dim_value(x.dim(1) + 1, DType::kI64));
    mask = ops::equal(along(1) - row, integer(a.offset));
  } else {
    if (a.offset != 0) reject("fill_diagonal", "offset must be 0 for ", x.type());
    for (int64_t i = 1; i < x.ndim(); ++i) {
      if (x.dim(i).equals(x.dim(0)) == false)
        reject("fill_diagonal", "x must have equal sizes, not be ", x.type());
      const Tensor same = ops::equal(along(i), along(0));
      mask = mask.defined() ? ops::logical_and(mask, same) : same;
    }
  }
  return {ops::where(mask, ops::full(Shape(), a.value, x.dtype()), x)};
}

Tensors decompose_fill_diagonal_tensor(CallContext& c) {
  const auto a = c.attrs_as<FillDiagonalTensorAttrs>();
  return {ops::diagonal_scatter(c.operand(0), c.operand(1), a.offset, a.dim1, a.dim2)};
}

Tensors decompose_fill_constant_batch_size_like(CallContext& c) {
  const auto a = c.attrs_as<FillConstantBatchSizeLikeAttrs>();
  const Tensor& x = c.operand(0);
  const auto place = axis_of("fill_constant_batch_size_like", a.output_dim_idx,
                             static_cast<int64_t>(a.shape.size()));
  Shape shape = to_shape(a.shape);
  shape[static_cast<size_t>(place)] =
      x.dim(axis_of("fill_constant_batch_size_like", a.input_dim_idx, x.ndim()));
  return {ops::full(shape, a.value, a.dtype)};
}

Tensors decompose_broadcast_shape(CallContext& c) {
  const auto a = c.attrs_as<BroadcastShapeAttrs>();
  std::vector<int64_t> out = a.x_shape.size() >= a.y_shape.size() ? a.x_shape : a.y_shape;
  const std::vector<int64_t>& other = a.x_shape.size() >= a.y_shape.size() ? a.y_shape : a.x_shape;
  for (size_t i = 0; i < other.size(); ++i) {
    int64_t& size = out[out.size() - other.size() + i];
    if (size != other[i] && size != 1 && other[i] != 1)
      reject("broadcast_shape", str(a.x_shape), " and ", str(a.y_shape), " do not broadcast");
    if (size == 1) size = other[i];
  }
  const auto rank = static_cast<int64_t>(out.size());
  return {Tensor(Array::from(out, {rank}))};
}

namespace {

constexpr int64_t kMaxBins = 1 << 24;

/// bins + 1 edges between two 0-D tensors.
Tensor edges_between(const Tensor& low, const Tensor& high, int64_t bins) {
  const Tensor steps = ops::arange(AttrValue(0), AttrValue(bins + 1), AttrValue(1), low.dtype());
  const auto last = static_cast<double>(bins);
  // From both ends, so that the last edge is exactly the largest element.
  const Tensor front = low + (high - low) * (steps / last);
  return ops::where(ops::equal(steps, number(last)), high, front);
}

/// The extremes of x, apart from each other.
std::pair<Tensor, Tensor> extremes(const Tensor& x) {
  if (element_count(std::span<const Dim>(x.shape())).equals(0) == true)
    return {full_of(Shape(), 0, x.dtype()), full_of(Shape(), 1, x.dtype())};
  const Tensor low = ops::min(x), high = ops::max(x), same = ops::equal(low, high);
  return {ops::where(same, low - 0.5, low), ops::where(same, high + 0.5, high)};
}

/// Sums of weights in the boxes between edges, and the edges.
Tensors histogram_of(std::string_view op, const Tensor& points, const Tensors& edges, bool density,
                     const Tensor& given) {
  const Dim count = points.dim(0);
  Tensor place = full_of({count}, 0, DType::kI64), inside;
  int64_t total = 1;
  Shape shape;
  Tensor volume;
  for (size_t d = 0; d < edges.size(); ++d) {
    if (edges[d].ndim() != 1 || !edges[d].dim(0).is_constant() || edges[d].dim(0).value() < 2)
      reject(op, "edges must be vectors of two numbers or more, not ", edges[d].type());
    const int64_t bins = edges[d].dim(0).value() - 1;
    if (bins > kMaxBins / total) reject(op, "more than ", kMaxBins, " boxes");
    total *= bins;
    shape.push_back(Dim(bins));
    const auto column = static_cast<int64_t>(d);
    const Tensor x = ops::reshape(slice_axis(points, 1, column, column + 1), {count});
    const Tensor first = slice_axis(edges[d], 0, 0, 1),
                 last = slice_axis(edges[d], 0, bins, bins + 1);
    const Tensor within = ops::logical_and(ops::greater_equal(x, first), ops::less_equal(x, last));
    inside = inside.defined() ? ops::logical_and(inside, within) : within;
    const Tensor found = ops::searchsorted(edges[d], x, false, true) - integer(1);
    const Tensor bin = ops::minimum(ops::maximum(found, integer(0)), integer(bins - 1));
    place = place * integer(bins) + bin;
    Shape along(edges.size(), Dim(1));
    along[d] = Dim(bins);
    const Tensor widths = ops::reshape(
        slice_axis(edges[d], 0, 1, bins + 1) - slice_axis(edges[d], 0, 0, bins), along);
    volume = volume.defined() ? volume * widths : widths;
  }
  Tensor weights = given.defined() ? ops::reshape(ops::cast(given, points.dtype()), {count})
                                   : full_of({count}, 1, points.dtype());
  weights = ops::where(inside, weights, number(0.0));
  Tensor sums = ops::reshape(
      ops::index_add(full_of({Dim(total)}, 0, points.dtype()), place, 0, weights), shape);
  if (density) sums = sums / volume / ops::sum(sums);
  Tensors out = {sums};
  out.insert(out.end(), edges.begin(), edges.end());
  return out;
}

/// [..., dimensions] as a matrix of float32 or float64.
Tensor points_of(std::string_view op, const Tensor& x) {
  if (x.ndim() < 2 || !x.dim(-1).is_constant() || x.dim(-1).value() < 1)
    reject(op, "x must be [..., dimensions], not ", x.type());
  const Tensor wide = x.dtype() == DType::kF64 ? x : ops::cast(x, DType::kF32);
  return ops::reshape(wide, {Dim(-1), x.dim(-1)});
}

}  // namespace

Tensors decompose_histogram_bin_edges(CallContext& c) {
  const auto a = c.attrs_as<HistogramBinEdgesAttrs>();
  if (a.bins < 1 || a.bins > kMaxBins) reject("histogram_bin_edges", "bins is ", a.bins);
  if (a.min > a.max) reject("histogram_bin_edges", "min ", a.min, " is above max ", a.max);
  const Tensor x = ops::cast(c.operand(0), DType::kF32);
  if (a.min == a.max) {
    const auto [low, high] = extremes(x);
    return {edges_between(low, high, a.bins)};
  }
  return {edges_between(full_of(Shape(), a.min, DType::kF32), full_of(Shape(), a.max, DType::kF32),
                        a.bins)};
}

Tensors decompose_histogramdd(CallContext& c) {
  const auto a = c.attrs_as<HistogramddAttrs>();
  const Tensor points = points_of("histogramdd", c.operand(0));
  const auto dimensions = static_cast<size_t>(points.dim(1).value());
  if (a.bins.is_list() && !a.bins.as_list().empty() && a.bins.as_list()[0].is_list()) {
    Tensors edges;
    for (const AttrValue& each : a.bins.as_list()) {
      const std::vector<double> values = each.as_doubles();
      const auto count = static_cast<int64_t>(values.size());
      if (!std::is_sorted(values.begin(), values.end()))
        reject("histogramdd", "edges must ascend, not be ", each);
      edges.push_back(ops::cast(Tensor(Array::from(values, {count})), points.dtype()));
    }
    if (edges.size() != dimensions)
      reject("histogramdd", edges.size(), " lists of edges for ", dimensions, " dimensions");
    return histogram_of("histogramdd", points, edges, a.density, c.operand(1));
  }
  std::vector<int64_t> bins(dimensions);
  if (a.bins.is_int())
    std::fill(bins.begin(), bins.end(), a.bins.as_int());
  else
    bins = a.bins.as_ints();
  if (bins.size() != dimensions)
    reject("histogramdd", bins.size(), " numbers of bins for ", dimensions, " dimensions");
  if (a.ranges && a.ranges->size() != 2 * dimensions)
    reject("histogramdd", "ranges must have ", 2 * dimensions, " numbers, not ", a.ranges->size());
  Tensors edges;
  for (size_t d = 0; d < dimensions; ++d) {
    if (bins[d] < 1 || bins[d] > kMaxBins) reject("histogramdd", "bins is ", bins[d]);
    const auto column = static_cast<int64_t>(d);
    auto [low, high] = extremes(slice_axis(points, 1, column, column + 1));
    if (a.ranges) {
      if (!((*a.ranges)[2 * d] < (*a.ranges)[2 * d + 1]))
        reject("histogramdd", "ranges ", (*a.ranges)[2 * d], " to ", (*a.ranges)[2 * d + 1]);
      low = full_of(Shape(), (*a.ranges)[2 * d], points.dtype());
      high = full_of(Shape(), (*a.ranges)[2 * d + 1], points.dtype());
    }
    edges.push_back(edges_between(low, high, bins[d]));
  }
  return histogram_of("histogramdd", points, edges, a.density, c.operand(1));
}

// As alpha_dropout, with one choice for each sample and channel.
Tensors decompose_feature_alpha_dropout(CallContext& c) {
  const auto a = c.attrs_as<FeatureAlphaDropoutAttrs>();
  const Tensor& x = c.operand(0);
  if (!(a.p >= 0 && a.p <= 1)) reject("feature_alpha_dropout", "p must lie in [0, 1], not ", a.p);
  if (x.ndim() < 2)
    reject("feature_alpha_dropout", "x must have at least 2 dimensions, not ", x.type());
  if (!a.training || a.p == 0) return {ops::assign(x)};
  if (a.p == 1) return {x * 0.0};
  const double limit = -1.0507009873554805 * 1.6732632423543772;
  const double scale = 1 / std::sqrt((1 - a.p) * (1 + a.p * limit * limit)),
               shift = -scale * limit * a.p;
  Shape shape(x.shape().size(), Dim(1));
  shape[0] = x.dim(0);
  shape[1] = x.dim(1);
  const Tensor kept = ops::dropout_mask(x, a.p, shape);
  return {(x * kept + (1.0 - kept) * limit) * scale + shift};
}

}  // namespace paddle::rules
