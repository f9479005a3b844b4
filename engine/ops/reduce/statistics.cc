// Rules of statistics.yaml.

#include <algorithm>
#include <cmath>
#include <iterator>

#include "ops/core/compose.h"
#include "ops/generated/complex.h"
#include "ops/generated/distance.h"
#include "ops/generated/indexing.h"
#include "ops/generated/linalg.h"
#include "ops/generated/math.h"
#include "ops/generated/reduce.h"
#include "ops/generated/reduce_rules.h"
#include "ops/generated/shape.h"
#include "ops/generated/spectrum.h"

namespace paddle::rules {
namespace {

using OptionalAxes = std::optional<std::vector<int64_t>>;

OptionalAxes some(const OptionalAxes& axes) { return axes && axes->empty() ? std::nullopt : axes; }

/// |x|^2, without a root.
Tensor squares(const Tensor& x) {
  if (!is_complex(x.dtype())) return ops::square(x);
  return ops::square(ops::real(x)) + ops::square(ops::imag(x));
}

bool is_full_float(DType d) { return d == DType::kF32 || d == DType::kF64; }

/// Whether the axes, which may be all, are the last ones of `rank` axes.
bool are_last(const OptionalAxes& axes, int64_t rank) {
  if (rank == 0) return false;
  if (!axes) return true;
  if (std::ssize(*axes) > rank) return false;  // some are out of range, which the sum rejects
  std::vector<int64_t> sorted;
  for (const int64_t axis : *axes) sorted.push_back(axis < 0 ? axis + rank : axis);
  std::sort(sorted.begin(), sorted.end());
  for (size_t i = 0; i < sorted.size(); ++i)
    if (sorted[i] != rank - std::ssize(sorted) + static_cast<int64_t>(i)) return false;
  return true;
}

/// The Euclidean norm over the last axes, or all.
Tensor norm_over_last(const Tensor& x, const OptionalAxes& axes, bool keepdim) {
  const int64_t count = axes ? std::ssize(*axes) : x.ndim();
  Shape rows(x.shape().begin(), x.shape().end() - count), result = rows;
  Dim each = 1;
  for (int64_t i = x.ndim() - count; i < x.ndim(); ++i) each = each * x.dim(i);
  rows.push_back(each);
  const Tensor norm = ops::euclidean_norm(count == 1 ? x : ops::reshape(x, rows));
  if (!keepdim) return norm;
  result.insert(result.end(), static_cast<size_t>(count), Dim(1));
  return ops::reshape(norm, result);
}

/// Σ |x|^p to the power 1/p; the gradient at 0 is 0.
Tensor vector_norm(const Tensor& x, double p, const OptionalAxes& axes, bool keepdim) {
  if (p == 2 && is_full_float(x.dtype()) && are_last(axes, x.ndim()))
    return norm_over_last(x, axes, keepdim);
  const Tensor size = ops::abs(x);
  if (p == INFINITY) return ops::max(size, axes, keepdim);
  if (p == -INFINITY) return ops::min(size, axes, keepdim);
  if (p == 0)
    return ops::sum(mask_of(ops::not_equal(x, number(0)), size), axes, std::nullopt, keepdim);
  if (p == 1) return ops::sum(size, axes, std::nullopt, keepdim);
  const Tensor total = p == 2 ? ops::sum(squares(x), axes, std::nullopt, keepdim)
                              : ops::sum(ops::pow(size, number(p)), axes, std::nullopt, keepdim);
  // A root has an infinite slope at 0, which would make NaN of the zero gradient within.
  const Tensor zero = ops::equal(total, number(0));
  const Tensor safe = ops::where(zero, number(1.0), total);
  const Tensor root = p == 2 ? ops::sqrt(safe) : ops::pow(safe, number(1 / p));
  return ops::where(zero, number(0.0), root);
}

/// The largest or smallest singular value (p = 2, -2), or their sum ('nuc').
Tensor spectral_norm(const Tensor& x, const AttrValue& p, const std::vector<int64_t>& both,
                     bool keepdim) {
  std::vector<int64_t> order;
  for (int64_t i = 0; i < x.ndim(); ++i)
    if (i != both[0] && i != both[1]) order.push_back(i);
  order.insert(order.end(), both.begin(), both.end());
  const Tensor values = ops::svdvals(ops::transpose(x, order));
  const std::vector<int64_t> last = {-1};
  const Tensor norm = p.is_string()       ? ops::sum(values, last)
                      : p.as_double() > 0 ? ops::max(values, last)
                                          : ops::min(values, last);
  std::vector<int64_t> axes = both;
  if (axes[0] > axes[1]) std::swap(axes[0], axes[1]);
  return keepdim ? ops::unsqueeze(norm, axes) : norm;
}

Tensor variance(const Tensor& x, const OptionalAxes& given, double correction, bool keepdim) {
  const OptionalAxes axes = some(given);
  const auto all = normal_axes(axes, x.ndim());
  const Tensor total =
      ops::sum(ops::square(x - ops::mean(x, axes, true)), axes, std::nullopt, keepdim);
  Tensor count = count_of(x.shape(), all, x.dtype());
  if (correction != 0) count = ops::maximum(count - correction, number(0));
  return total / count;
}

/// Trapezoids: widths times mean heights of neighboring samples.
Tensor trapezoids(const char* op, const Tensor& y, const Tensor& x, const AttrValue& dx,
                  int64_t axis) {
  if (x.defined() && !dx.is_none()) fail(ErrorCode::kUsage, op, ": x and dx cannot both be given");
  if (y.ndim() == 0) fail(ErrorCode::kUsage, op, ": y must have at least one dimension");
  const int64_t at = axis < 0 ? axis + y.ndim() : axis;
  const Dim n = y.dim(axis);
  const Tensor heights = (slice_axis(y, at, 1, n) + slice_axis(y, at, 0, n - 1)) * 0.5;
  if (!x.defined()) return heights * (dx.is_none() ? 1.0 : dx.as_double());
  const bool fits = x.ndim() == 1 ? x.dim(0).equals(n) != false
                                  : x.ndim() == y.ndim() && x.dim(at).equals(n) != false;
  if (!fits)
    fail(ErrorCode::kUsage, op, ": x ", x.type(), " does not fit axis ", axis, " of y ", y.type());
  if (x.ndim() == 1) {
    Shape along(y.shape().size(), Dim(1));
    along[static_cast<size_t>(at)] = n - 1;
    return heights * ops::reshape(slice_axis(x, 0, 1, n) - slice_axis(x, 0, 0, n - 1), along);
  }
  return heights * (slice_axis(x, at, 1, n) - slice_axis(x, at, 0, n - 1));
}

}  // namespace

Tensors decompose_nansum(CallContext& c) {
  const auto a = c.attrs_as<NansumAttrs>();
  const Tensor& x = c.operand(0);
  const Tensor clean = is_float(x.dtype()) ? ops::where(ops::isnan(x), number(0.0), x) : x;
  return {ops::sum(clean, some(a.axis), a.dtype, a.keepdim)};
}

Tensors decompose_nanmean(CallContext& c) {
  const auto a = c.attrs_as<NanmeanAttrs>();
  const Tensor& x = c.operand(0);
  const Tensor nan = ops::isnan(x);
  const Tensor total =
      ops::sum(ops::where(nan, number(0.0), x), some(a.axis), std::nullopt, a.keepdim);
  return {total /
          ops::sum(mask_of(ops::logical_not(nan), x), some(a.axis), std::nullopt, a.keepdim)};
}

Tensors decompose_count_nonzero(CallContext& c) {
  const auto a = c.attrs_as<CountNonzeroAttrs>();
  const Tensor set = ops::logical_not(ops::logical_not(c.operand(0)));
  return {ops::sum(ops::cast(set, DType::kI64), some(a.axis), std::nullopt, a.keepdim)};
}

Tensors decompose_var(CallContext& c) {
  const auto a = c.attrs_as<VarAttrs>();
  const double correction = a.unbiased ? (*a.unbiased ? 1 : 0) : a.correction.as_double();
  return {variance(c.operand(0), a.axis, correction, a.keepdim)};
}

Tensors decompose_std(CallContext& c) {
  const auto a = c.attrs_as<StdAttrs>();
  return {ops::sqrt(variance(c.operand(0), a.axis, a.unbiased ? 1 : 0, a.keepdim))};
}

Tensors decompose_vector_norm(CallContext& c) {
  const auto a = c.attrs_as<VectorNormAttrs>();
  const Tensor x = a.dtype ? ops::cast(c.operand(0), *a.dtype) : c.operand(0);
  return {vector_norm(x, a.p.as_double(), some(a.axis), a.keepdim)};
}

Tensors decompose_norm(CallContext& c) {
  const auto a = c.attrs_as<NormAttrs>();
  const Tensor x = a.dtype ? ops::cast(c.operand(0), *a.dtype) : c.operand(0);
  const OptionalAxes axes = some(a.axis);
  if (a.p.is_none()) return {vector_norm(x, 2, axes, a.keepdim)};
  const auto two_axes = [&] {
    if (axes ? axes->size() != 2 : x.ndim() != 2)
      fail(ErrorCode::kUsage, "norm: order ", a.p, " needs two axes of ", x.type());
    std::vector<int64_t> out = axes.value_or(std::vector<int64_t>{0, 1});
    for (int64_t& axis : out) {
      if (axis < -x.ndim() || axis >= x.ndim())
        fail(ErrorCode::kUsage, "norm: axis ", axis, " is out of range for ", x.type());
      if (axis < 0) axis += x.ndim();
    }
    if (out[0] == out[1]) fail(ErrorCode::kUsage, "norm: axis ", out[0], " is given twice");
    return out;
  };
  if (a.p.is_string()) {
    if (a.p.as_string() == "nuc") return {spectral_norm(x, a.p, two_axes(), a.keepdim)};
    if (a.p.as_string() != "fro")
      fail(ErrorCode::kUsage, "norm: p '", a.p.as_string(), "' is neither 'fro' nor 'nuc'");
    return {vector_norm(x, 2, axes, a.keepdim)};
  }
  const double p = a.p.as_double();
  if (!axes || axes->size() != 2) return {vector_norm(x, p, axes, a.keepdim)};
  const std::vector<int64_t> both = two_axes();
  if (std::abs(p) == 2) return {spectral_norm(x, a.p, both, a.keepdim)};
  // Induced norms: the largest (smallest) sum along one of the two axes.
  const int64_t row = both[0], column = both[1];
  if (std::abs(p) != 1 && std::abs(p) != INFINITY)
    fail(ErrorCode::kUsage, "norm: the matrix norm of order ", p, " is not offered");
  const std::vector<int64_t> within = {std::abs(p) == 1 ? row : column},
                             across = {std::abs(p) == 1 ? column : row};
  const Tensor sums = ops::sum(ops::abs(x), within, std::nullopt, true);
  const Tensor best = p > 0 ? ops::max(sums, across, true) : ops::min(sums, across, true);
  return {a.keepdim ? best : ops::squeeze(best, std::vector<int64_t>{row, column})};
}

Tensors decompose_dist(CallContext& c) {
  return {vector_norm(c.operand(0) - c.operand(1), c.attrs_as<DistAttrs>().p.as_double(),
                      std::nullopt, false)};
}

Tensors decompose_diff(CallContext& c) {
  const auto a = c.attrs_as<DiffAttrs>();
  Tensor x = c.operand(0);
  if (x.ndim() == 0) fail(ErrorCode::kUsage, "diff: x must have at least one dimension");
  if (a.n < 1) fail(ErrorCode::kUsage, "diff: n must be at least 1, not ", a.n);
  const int64_t axis = a.axis < 0 ? a.axis + x.ndim() : a.axis;
  Tensors pieces;
  if (c.has(1)) pieces.push_back(c.operand(1));
  pieces.push_back(x);
  if (c.has(2)) pieces.push_back(c.operand(2));
  if (pieces.size() > 1) x = ops::concat(pieces, axis);
  // Nothing is left after as many differences as there are elements.
  constexpr int64_t kMaxDifferences = 1 << 16;
  if (a.n > kMaxDifferences && !x.dim(axis).is_constant())
    fail(ErrorCode::kUsage, "diff: n must be at most ", kMaxDifferences, ", not ", a.n);
  for (int64_t i = 0; i < a.n; ++i) {
    const Dim n = x.dim(axis);
    if (n.equals(0) == true) break;
    const Tensor behind = slice_axis(x, axis, 1, n), front = slice_axis(x, axis, 0, n - 1);
    x = is_bool(x.dtype()) ? ops::not_equal(behind, front) : behind - front;
  }
  return {x};
}

Tensors decompose_trapezoid(CallContext& c) {
  const auto a = c.attrs_as<TrapezoidAttrs>();
  return {ops::sum(trapezoids("trapezoid", c.operand(0), c.operand(1), a.dx, a.axis),
                   std::vector<int64_t>{a.axis})};
}

Tensors decompose_cumulative_trapezoid(CallContext& c) {
  const auto a = c.attrs_as<CumulativeTrapezoidAttrs>();
  return {ops::cumsum(trapezoids("cumulative_trapezoid", c.operand(0), c.operand(1), a.dx, a.axis),
                      a.axis)};
}

Tensors decompose_cosine_similarity(CallContext& c) {
  const auto a = c.attrs_as<CosineSimilarityAttrs>();
  const Tensor &x = c.operand(0), &y = c.operand(1);
  const auto total = [&](const Tensor& t) { return ops::sum(t, std::vector<int64_t>{a.axis}); };
  const Tensor sizes = ops::sqrt(ops::maximum(total(x * x) * total(y * y), number(a.eps * a.eps)));
  return {total(x * y) / sizes};
}

Tensors decompose_pairwise_distance(CallContext& c) {
  const auto a = c.attrs_as<PairwiseDistanceAttrs>();
  return {vector_norm(c.operand(0) - c.operand(1) + a.epsilon, a.p.as_double(),
                      std::vector<int64_t>{-1}, a.keepdim)};
}

Tensors decompose_normalize(CallContext& c) {
  const auto a = c.attrs_as<NormalizeAttrs>();
  const Tensor& x = c.operand(0);
  const int64_t axis = x.ndim() == 1 ? 0 : a.axis;
  const Tensor size = vector_norm(x, a.p.as_double(), std::vector<int64_t>{axis}, true);
  return {x / ops::maximum(size, number(a.epsilon))};
}

Tensors decompose_cdist(CallContext& c) {
  const auto a = c.attrs_as<CdistAttrs>();
  const Tensor &x = c.operand(0), &y = c.operand(1);
  if (x.ndim() < 2 || y.ndim() < 2)
    reject("cdist", "expected matrices, found ", x.type(), " and ", y.type());
  if (x.dim(-1).equals(y.dim(-1)) == false)
    reject("cdist", "rows differ in length: ", x.type(), " and ", y.type());
  if (!(a.p.as_double() >= 0)) reject("cdist", "p must not be negative, not ", a.p);
  if (a.p.as_double() == 2 && is_full_float(x.dtype())) return {ops::euclidean_distances(x, y)};
  return {ops::vector_norm(ops::unsqueeze(x, {-2}) - ops::unsqueeze(y, {-3}), a.p, {{-1}})};
}

Tensors decompose_pdist(CallContext& c) {
  const auto a = c.attrs_as<PdistAttrs>();
  const Tensor& x = c.operand(0);
  if (x.ndim() != 2) reject("pdist", "expected a matrix, found ", x.type());
  const int64_t n = x.dim(0).value();
  if (n > 20000) reject("pdist", "more than 20000 rows: ", n);
  std::vector<int64_t> first, second;
  for (int64_t i = 0; i < n; ++i)
    for (int64_t k = i + 1; k < n; ++k) {
      first.push_back(i);
      second.push_back(k);
    }
  const auto count = static_cast<int64_t>(first.size());
  if (count == 0) return {full_of({Dim(0)}, 0, x.dtype())};
  const Tensor difference = ops::index_select(x, Tensor(Array::from(first, {count}))) -
                            ops::index_select(x, Tensor(Array::from(second, {count})));
  return {ops::vector_norm(difference, a.p, {{-1}})};
}

Tensors decompose_renorm(CallContext& c) {
  const auto a = c.attrs_as<RenormAttrs>();
  const Tensor& x = c.operand(0);
  const int64_t axis = a.axis < 0 ? a.axis + x.ndim() : a.axis;
  if (axis < 0 || axis >= x.ndim())
    reject("renorm", "axis ", a.axis, " is out of range for ", x.type());
  if (!(a.p.as_double() > 0)) reject("renorm", "p must be positive, not ", a.p);
  Axes others;
  for (int64_t i = 0; i < x.ndim(); ++i)
    if (i != axis) others.push_back(i);
  if (others.empty()) others.push_back(x.ndim());
  const Tensor wide = x.ndim() == 1 ? ops::unsqueeze(x, {1}) : x;
  const Tensor size = ops::vector_norm(wide, a.p, others, true);
  const Tensor factor = ops::where(ops::greater_than(size, number(a.max_norm)),
                                   a.max_norm / (size + 1e-7), number(1.0));
  return {ops::reshape(wide * factor, x.shape())};
}

}  // namespace paddle::rules
