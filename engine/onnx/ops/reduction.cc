// Reductions along axes.

#include <algorithm>
#include <cmath>
#include <limits>

#include "onnx/ops/helpers.h"
#include "ops/generated/creation.h"
#include "ops/generated/math.h"
#include "ops/generated/reduce.h"
#include "ops/generated/shape.h"

namespace paddle::onnx {
namespace {

using Axes = std::optional<std::vector<int64_t>>;
/// Reduces over `axes` (empty: all), keeping them as size 1 if `keep` is set.
using Reduce = Tensor (*)(const Tensor& x, const Axes& axes, bool keep);

/// The axes to reduce, from an attribute or (newer opsets) an input. By default all or none.
std::vector<int64_t> reduced_axes(const NodeCall& c, int64_t rank) {
  std::vector<int64_t> axes;
  if (const auto given = c.axes(1)) axes = *given;
  if (axes.empty() && !c.bool_attr("noop_with_empty_axes", false)) return leading_axes(rank);
  for (int64_t& a : axes) a = c.axis(a, rank);
  return axes;
}

template <Reduce F>
Values reduce(NodeCall& c) {
  const Tensor& x = c.tensor(0);
  const std::vector<int64_t> axes = reduced_axes(c, x.ndim());
  if (!axes.empty()) return {F(x, axes, c.bool_attr("keepdims", true))};
  // Over no axes, each element is a sum of one term.
  Shape wide = x.shape();
  wide.push_back(1);
  return {F(ops::reshape(x, wide), std::vector<int64_t>{x.ndim()}, false)};
}

Tensor sum(const Tensor& x, const Axes& axes, bool keep) {
  return ops::sum(x, axes, x.dtype(), keep);
}

/// Integer means truncate towards zero.
Tensor mean(const Tensor& x, const Axes& axes, bool keep) {
  if (is_float(x.dtype())) return ops::mean(x, axes, keep);
  return ops::cast(ops::mean(ops::cast(x, DType::kF64), axes, keep), x.dtype());
}

Tensor prod(const Tensor& x, const Axes& axes, bool keep) {
  return ops::prod(x, axes, keep, x.dtype());
}

/// Extremes of booleans are computed as 0 and 1; over empty axes they are the identity of `F`.
template <Tensor (*F)(const Tensor&, const Axes&, bool)>
Tensor extreme(const Tensor& x, const Axes& axes, bool keep, double empty) {
  const bool none = std::any_of(axes->begin(), axes->end(), [&](int64_t a) {
    return x.dim(a).is_constant() && x.dim(a).value() == 0;
  });
  if (none) {
    Shape shape;
    for (int64_t i = 0; i < x.ndim(); ++i) {
      const bool reduced = std::find(axes->begin(), axes->end(), i) != axes->end();
      if (!reduced) shape.push_back(x.dim(i));
      if (reduced && keep) shape.push_back(1);
    }
    if (is_bool(x.dtype())) return ops::full(shape, empty > 0, DType::kBool);
    if (is_float(x.dtype())) return ops::full(shape, empty, x.dtype());
    const bool is_signed = info(x.dtype()).kind == DTypeKind::kSigned;
    const int bits = info(x.dtype()).bits - (is_signed ? 1 : 0);
    const double bound = empty > 0   ? std::ldexp(1.0, bits) - 1
                         : is_signed ? -std::ldexp(1.0, bits)
                                     : 0;
    return ops::full(shape, bound, x.dtype());
  }
  if (!is_bool(x.dtype())) return F(x, axes, keep);
  return ops::cast(F(ops::cast(x, DType::kU8), axes, keep), DType::kBool);
}

Tensor max(const Tensor& x, const Axes& axes, bool keep) {
  return extreme<ops::max>(x, axes, keep, -std::numeric_limits<double>::infinity());
}
Tensor min(const Tensor& x, const Axes& axes, bool keep) {
  return extreme<ops::min>(x, axes, keep, std::numeric_limits<double>::infinity());
}

Tensor l1(const Tensor& x, const Axes& axes, bool keep) { return sum(ops::abs(x), axes, keep); }
Tensor sum_square(const Tensor& x, const Axes& axes, bool keep) { return sum(x * x, axes, keep); }
Tensor l2(const Tensor& x, const Axes& axes, bool keep) {
  const Tensor wide = ops::cast(x, DType::kF64);  // avoids overflow of squares
  return ops::cast(ops::sqrt(sum_square(wide, axes, keep)), x.dtype());
}
Tensor log_sum(const Tensor& x, const Axes& axes, bool keep) {
  const Tensor wide = is_float(x.dtype()) ? x : ops::cast(x, DType::kF64);
  return ops::cast(ops::log(sum(wide, axes, keep)), x.dtype());
}
Tensor log_sum_exp(const Tensor& x, const Axes& axes, bool keep) {
  const Tensor wide = is_float(x.dtype()) ? x : ops::cast(x, DType::kF64);
  return ops::cast(ops::logsumexp(wide, axes, keep), x.dtype());
}

/// The first or (select_last_index) last index of the extreme.
template <Tensor (*F)(const Tensor&, const std::optional<int64_t>&, bool, DType)>
Values arg(NodeCall& c) {
  const Tensor& x = c.tensor(0);
  const int64_t axis = c.axis(c.int_attr("axis", 0), x.ndim());
  const bool keep = c.bool_attr("keepdims", true);
  if (!c.bool_attr("select_last_index", false)) return {F(x, axis, keep, DType::kI64)};
  const Tensor last = dim_value(x.dim(axis) - 1, DType::kI64);
  return {last - F(ops::flip(x, {axis}), axis, keep, DType::kI64)};
}

/// Running sums or products, exclusive or from the end (reverse).
template <Tensor (*F)(const Tensor&, const std::optional<int64_t>&, const std::optional<DType>&)>
Values cumulative(NodeCall& c, double neutral) {
  Tensor x = c.tensor(0);
  const int64_t axis = c.axis(c.constant_int(1), x.ndim());
  const bool reverse = c.bool_attr("reverse", false);
  if (reverse) x = ops::flip(x, {axis});
  Tensor out = F(x, axis, x.dtype());
  if (c.bool_attr("exclusive", false)) {
    const Dim size = x.dim(axis);
    Shape one = x.shape();
    one[static_cast<size_t>(axis)] = 1;
    out =
        ops::concat({ops::full(one, neutral, x.dtype()), slice_axis(out, axis, 0, size - 1)}, axis);
  }
  return {reverse ? ops::flip(out, {axis}) : out};
}
Values cumsum(NodeCall& c) { return cumulative<ops::cumsum>(c, 0); }
Values cumprod(NodeCall& c) { return cumulative<ops::cumprod>(c, 1); }

}  // namespace

OperatorTable reduction_operators() {
  static constexpr Operator operators[] = {
      {"ReduceSum", 1, reduce<sum>},
      {"ReduceMean", 1, reduce<mean>},
      {"ReduceProd", 1, reduce<prod>},
      {"ReduceMax", 1, reduce<max>},
      {"ReduceMin", 1, reduce<min>},
      {"ReduceL1", 1, reduce<l1>},
      {"ReduceL2", 1, reduce<l2>},
      {"ReduceSumSquare", 1, reduce<sum_square>},
      {"ReduceLogSum", 1, reduce<log_sum>},
      {"ReduceLogSumExp", 1, reduce<log_sum_exp>},
      {"ArgMax", 1, arg<ops::argmax>},
      {"ArgMin", 1, arg<ops::argmin>},
      {"CumSum", 1, cumsum},
      {"CumProd", 1, cumprod},
  };
  return operators;
}

}  // namespace paddle::onnx
